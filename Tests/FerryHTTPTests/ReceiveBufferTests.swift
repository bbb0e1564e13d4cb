import Glibc
import Testing

@testable import FerryHTTP

/// How much the kernel may hold, by share and way.
@Suite struct ReceiveBufferTests {
    private static let wide = ReceiveBuffer.largest

    @Test(
        arguments: [
            (1, 0, 4_096, 4_096), (4_096, 0, 4_096, 4_096), (65_536, 0, 8_192, 4_096),
            (131_072, 0, 16_384, 8_192),
            (1 << 20, 0, 131_072, 20_480), (1 << 20, 31, 131_072, 20_480), (1 << 20, 125, 524_288, 20_480),
            (4_096, 500, 8_192, 4_096), (1 << 20, 90_000, 4 << 20, 20_480),
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
        #expect(buffer.size == 20_480)
        #expect(!buffer.isDue(now: .milliseconds(49)))
        #expect(buffer.isDue(now: .milliseconds(50)))
        #expect(buffer.follow(1 << 20, roundTrip: .zero, now: .milliseconds(50)) == 40_960)
        #expect(!buffer.isDue(now: .milliseconds(99)))
        #expect(buffer.follow(1 << 20, roundTrip: .zero, now: .milliseconds(100)) == 81_920)
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
        buffer.change(to: 1 << 20, roundTrip: .zero, now: .zero)
        #expect(buffer.size == 131_072)
        buffer.change(to: nil, roundTrip: .zero, now: .zero)
        #expect(buffer.size == nil && buffer.isDue(now: .zero))
        #expect(buffer.follow(65_536, roundTrip: .zero, now: .zero) == 8_192)
    }

    @Test func `a large buffer fills, is read, and leaves no more room meanwhile`() {
        var buffer = ReceiveBuffer()
        buffer.change(to: 1 << 20, roundTrip: .zero, now: .zero)
        #expect(buffer.shrink(to: 131_072, current: 6_000_000, queued: 1_000_000) == 6_000_000, "it fills")
        #expect(buffer.follow(1 << 20, roundTrip: .zero, now: .zero) == 131_072, "so it is looked at again")
        #expect(buffer.shrink(to: 131_072, current: 6_000_000, queued: 5_000_000) == 6_000_000)
        for queued in [4_900_000, 2_000_000, 200_000] {
            let size = buffer.shrink(to: 131_072, current: 6_000_000, queued: queued)
            #expect((queued..<queued + queued / 16).contains(size))
        }
        #expect(buffer.shrink(to: 131_072, current: 210_000, queued: 100_000) == 131_072)
        #expect(buffer.follow(1 << 20, roundTrip: .zero, now: .zero) == nil)
    }

    @Test func `a buffer that holds nothing is small at once`() {
        var buffer = ReceiveBuffer()
        buffer.change(to: 65_536, roundTrip: .zero, now: .zero)
        #expect(buffer.shrink(to: 8_192, current: 131_072, queued: 0) == 8_192)
    }

    @Test func `the kernel follows, and decides again in the end`() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { for descriptor in [listener, client] { close(descriptor) } }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        SocketBuffers.begin(client, with: 1 << 20)
        let usual = SocketBuffers.held(client).size
        #expect(usual >= 16_384, "what is not small is left alone")
        SocketBuffers.begin(client, with: 8_192)
        #expect(SocketBuffers.held(client).size == 8_192)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let connected = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, length) == 0 && listen(listener, 1) == 0
                    && getsockname(listener, address, &length) == 0 && connect(client, address, length) == 0
            }
        }
        try #require(connected)
        let link = SocketTable.Link(
            own: "",
            ownPort: Self.port(client),
            peer: "",
            peerPort: Self.port(listener)
        )
        let table = SocketTable()
        #expect(table.find(link, among: [listener]) == nil)
        #expect(table.find(link, among: [listener, client]) == client)
        #expect(table.find(link, among: []) == client)
        #expect(SocketBuffers.held(client).size == 8_192)
        SocketBuffers.grow(client, to: 200_000)
        #expect((100_000...400_000).contains(SocketBuffers.held(client).size))
        SocketBuffers.shrink(client, to: 4_096)
        #expect(SocketBuffers.held(client).size == 4_096)
        SocketBuffers.release(client)
        #expect(SocketBuffers.held(client).size >= 1 << 20)
        #expect(SocketBuffers.held(client).queued == 0)
        shutdown(client, Int32(SHUT_RDWR))
        #expect(SocketBuffers.held(-1).size == 0 && SocketBuffers.roundTrip(-1) == .zero)
    }

    private static func port(_ descriptor: Int32) -> Int32 {
        var address = sockaddr_in()
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        _ = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        return Int32(UInt16(bigEndian: address.sin_port))
    }
}
