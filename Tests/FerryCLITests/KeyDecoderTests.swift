import Testing

@testable import FerryCLI

@Suite struct KeyDecoderTests {
    /// What terminals send, and the keys that are meant.
    static let cases: [(bytes: String, keys: [Key])] = [
        ("q", [.character("q")]),
        ("\u{1B}[A\u{1B}[B\u{1B}[C\u{1B}[D", [.up, .down, .right, .left]),
        ("\u{1B}OA\u{1B}OB", [.up, .down]),
        ("\u{1B}[1;5A\u{1B}[1;2B", [.up, .down]),
        ("\u{1B}[5~\u{1B}[6~", [.pageUp, .pageDown]),
        (
            "\u{1B}[H\u{1B}[F\u{1B}[1~\u{1B}[4~\u{1B}[7~\u{1B}[8~\u{1B}OH\u{1B}OF",
            [.home, .end, .home, .end, .home, .end, .home, .end]
        ),
        ("\r\n\u{7F}\u{8}", [.enter, .enter, .backspace, .backspace]),
        ("\u{15}\u{C}", [.clearLine, .redraw]),
        ("é日👩", [.character("é"), .character("日"), .character("👩")]),
        ("\u{1B}[24~x", [.character("x")]),
        ("\u{1B}[[Ax", [.character("x")]),
        ("\u{1B}[200~a\u{1B}[201~", [.character("a")]),
        ("\u{1B}q", [.escape, .character("q")]),
        ("\u{1B}\u{1B}[A", [.escape, .up]),
        ("\u{1}\u{9}x", [.character("x")]),
        ("\u{1B}[3\rx", [.enter, .character("x")]),
    ]

    @Test(arguments: Self.cases)
    func `keys are read as the terminal sends them`(bytes: String, keys: [Key]) {
        var decoder = KeyDecoder()
        #expect(decoder.feed(bytes.utf8) == keys)
        #expect(!decoder.isWaiting)
    }

    @Test(arguments: Self.cases)
    func `sequences may come in pieces`(bytes: String, keys: [Key]) {
        let all = Array(bytes.utf8)
        for cut in 0...all.count {
            var decoder = KeyDecoder()
            #expect(decoder.feed(all[..<cut]) + decoder.feed(all[cut...]) == keys, "cut at \(cut)")
        }
        var decoder = KeyDecoder()
        #expect(all.flatMap { decoder.feed([$0]) } == keys)
    }

    @Test func `a lone escape is a key once nothing follows`() {
        var decoder = KeyDecoder()
        #expect(decoder.feed([0x1B]) == [])
        #expect(decoder.isWaiting)
        #expect(decoder.flush() == [.escape])
        #expect(decoder.feed([0x1B, 0x5B]) == [])
        #expect(decoder.flush() == [])
        #expect(decoder.feed("q".utf8) == [.character("q")])
    }

    @Test func `bytes that are no text are passed over`() {
        var decoder = KeyDecoder()
        #expect(
            decoder.feed([0xFF, 0x80, 0xC3, 0x28, 0xED, 0xA0, 0x80, 0x61]) == [
                .character("("), .character("a"),
            ]
        )
        var noise = KeyDecoder()
        #expect(noise.feed([0x1B, 0x5B] + [UInt8](repeating: 0x31, count: 1_000)) == [])
        #expect(!noise.isWaiting)
    }

    @Test func `any bytes in any pieces end somewhere`() {
        var generator = SplitMix(seed: 7)
        for _ in 0..<2_000 {
            let bytes = (0..<12).map { _ in
                generator.pick([0x1B, 0x5B, 0x4F, 0x31, 0x3B, 0x7E, 0x41, 0xE6, 0x97, 0xA5, 0x0D])
            }
            var whole = KeyDecoder()
            var pieces = KeyDecoder()
            let keys = whole.feed(bytes)
            #expect(bytes.flatMap { pieces.feed([$0]) } == keys)
        }
    }
}

/// A small generator with a known seed.
private struct SplitMix {
    private var state: UInt64

    init(seed: UInt64) {
        self.state = seed
    }

    mutating func pick(_ bytes: [UInt8]) -> UInt8 {
        self.state &+= 0x9E37_79B9_7F4A_7C15
        var z = self.state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return bytes[Int((z ^ (z >> 31)) % UInt64(bytes.count))]
    }
}
