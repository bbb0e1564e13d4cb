import Testing

@testable import FerryHTTP

/// How much the kernel may hold, by share and way.
@Suite struct ReceiveBufferTests {
    private static let wide = ReceiveBuffer.largest

    @Test(
        arguments: [
            (1, 0, 4_096, 4_096), (4_096, 0, 4_096, 4_096), (65_536, 0, 8_192, 4_096),
            (1 << 20, 0, 131_072, 16_384), (1 << 20, 31, 131_072, 16_384), (1 << 20, 125, 524_288, 16_384),
            (4_096, 500, 8_192, 4_096), (1 << 20, 90_000, 4 << 20, 16_384),
            (100 << 20, 0, 13_107_200, 1_638_400), (1 << 40, 100, wide, wide), (.max, 1_000, wide, wide),
        ] as [(Int64, Int, Int, Int)]
    )
    func `it holds an eighth of a second or four round trips`(share: Int64, trip: Int, size: Int, first: Int)
    {
        #expect(ReceiveBuffer.size(at: share, roundTrip: .milliseconds(trip)) == size)
        #expect(ReceiveBuffer.firstSize(at: share) == first)
    }

    @Test func `it grows step by step and shrinks at once`() {
        var buffer = ReceiveBuffer()
        #expect(buffer.size == nil)
        buffer.begin(at: 1 << 20, now: .zero)
        #expect(buffer.size == 16_384)
        #expect(!buffer.isDue(now: .milliseconds(49)))
        #expect(buffer.isDue(now: .milliseconds(50)))
        #expect(buffer.follow(1 << 20, roundTrip: .zero, now: .milliseconds(50)) == 32_768)
        #expect(!buffer.isDue(now: .milliseconds(99)))
        #expect(buffer.follow(1 << 20, roundTrip: .zero, now: .milliseconds(100)) == 65_536)
        #expect(buffer.follow(1 << 20, roundTrip: .zero, now: .milliseconds(150)) == 131_072)
        #expect(buffer.follow(1 << 20, roundTrip: .zero, now: .milliseconds(200)) == nil)
        #expect(
            buffer.follow((1 << 20) + 100_000, roundTrip: .zero, now: .milliseconds(250)) == nil,
            "it is little"
        )
        #expect(buffer.follow(65_536, roundTrip: .zero, now: .milliseconds(251)) == 8_192)
        #expect(buffer.size == 8_192)
    }

    @Test func `a changed limit is followed at once`() {
        var buffer = ReceiveBuffer()
        buffer.begin(at: 4_096, now: .zero)
        #expect(buffer.change(to: 1 << 20, roundTrip: .zero, now: .zero) == 131_072)
        #expect(buffer.change(to: nil, roundTrip: .zero, now: .zero) == nil)
        #expect(buffer.size == nil && buffer.isDue(now: .zero))
        #expect(buffer.follow(65_536, roundTrip: .zero, now: .zero) == 8_192)
    }
}
