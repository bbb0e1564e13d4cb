import FerryCore
import Testing

@Suite struct ByteCountTests {
    @Test(
        arguments: [
            ("0", 0), ("10", 10), ("10b", 10), ("10B", 10), ("10K", 10_240), ("10k", 10_240),
            ("1M", 1_048_576),
            ("1.5M", 1_572_864), ("2G", 2_147_483_648), ("1T", 1_099_511_627_776),
            ("1P", 1_125_899_906_842_624),
            ("10KB", 10_000), ("10kb", 10_000), ("1.5MB", 1_500_000), ("1GB", 1_000_000_000),
            ("1TB", 1_000_000_000_000),
            ("10MiB", 10_485_760), ("1.5 MiB", 1_572_864), ("0.1K", 102), ("1.000K", 1_024), ("1.0", 1),
            ("8191P", 9_222_246_136_947_933_184), ("9223372036854775K", nil), ("8192P", nil),
            ("9007199254740991K", 9_223_372_036_854_774_784),
            ("9007199254740992K", nil), ("999999999999999999", 999_999_999_999_999_999),
            ("9999999999999999999", nil),
            ("", nil), (" ", nil), ("K", nil), (".5K", nil), ("5.K", nil), ("1.5", nil), ("1.5B", nil),
            ("-1", nil),
            ("+1", nil), ("1e3", nil), ("1KK", nil), ("1Kib/s", nil), ("1 ", nil), ("1  K", nil), (" 1", nil),
            ("1X", nil),
            ("1iB", nil), ("1KiBi", nil), ("1,5K", nil), ("0x10", nil), ("1.2.3K", nil), ("١", nil),
            ("1K\0", nil),
        ] as [(String, Int64?)]
    )
    func `sizes are read`(text: String, bytes: Int64?) {
        #expect(ByteCount(text: text)?.bytes == bytes)
    }

    @Test(
        arguments: [
            (0, "0 B"), (1, "1 B"), (1_023, "1023 B"), (1_024, "1.0 KiB"), (1_536, "1.5 KiB"),
            (1_048_575, "1.0 MiB"),
            (1_048_524, "1023.9 KiB"), (1_048_525, "1.0 MiB"), (1_572_864, "1.5 MiB"),
            (1_073_741_824, "1.0 GiB"),
            (1_099_511_627_776, "1.0 TiB"), (.max, "8.0 EiB"), (.min, "-8.0 EiB"), (-5, "-5 B"),
            (-2_048, "-2.0 KiB"),
        ] as [(Int64, String)]
    )
    func `sizes are written in powers of 1024`(bytes: Int64, text: String) {
        #expect(ByteCount(bytes: bytes).text == text)
        #expect(ByteCount.rate(bytes) == text + "/s")
    }

    @Test func `sizes are ordered`() {
        #expect(ByteCount(bytes: 1) < ByteCount(bytes: 2))
        #expect(ByteCount(bytes: 2) == ByteCount(bytes: 2))
    }

    @Test(arguments: nastyTexts)
    func `no text is too strange`(text: String) {
        if let count = ByteCount(text: text) { #expect(count.bytes >= 0) }
        if let duration = DurationText.parse(text) { #expect(duration >= .zero) }
    }
}

@Suite struct DurationTextTests {
    @Test(
        arguments: [
            ("90s", .seconds(90)), ("10m", .seconds(600)), ("8h", .seconds(28_800)),
            ("2d", .seconds(172_800)),
            ("500ms", .milliseconds(500)), ("1.5h", .seconds(5_400)), ("90", .seconds(90)), ("0", .zero),
            ("0s", .zero),
            ("0.5", .milliseconds(500)), ("0.001s", .milliseconds(1)), ("1h30m", .seconds(5_400)),
            ("1h 02m", .seconds(3_720)), ("3m 05s", .seconds(185)), ("2d 03h", .seconds(183_600)),
            ("0.000000001s", .nanoseconds(1)), ("100000000000", .seconds(100_000_000_000)),
            ("100000000001", nil),
            ("999999999999999999d", nil), ("9999999999999999999s", nil), ("", nil), (" ", nil), ("s", nil),
            ("-5s", nil),
            ("+5s", nil), ("5x", nil), ("5S", nil), ("5 s", nil), ("1h30", nil), ("1h  30m", nil),
            ("5s ", nil), (" 5s", nil),
            (".5s", nil), ("5.s", nil), ("1e3", nil), ("1h-5m", nil), ("5min", nil), ("٥s", nil),
            ("1:30", nil), ("inf", nil),
        ] as [(String, Duration?)]
    )
    func `durations are read`(text: String, expected: Duration?) {
        #expect(DurationText.parse(text) == expected)
    }

    @Test(
        arguments: [
            (.zero, "0s"), (.seconds(-5), "0s"), (.milliseconds(-1), "0s"), (.milliseconds(500), "500ms"),
            (.seconds(1), "1s"),
            (.milliseconds(12_900), "12s"), (.seconds(59), "59s"), (.seconds(60), "1m 00s"),
            (.seconds(185), "3m 05s"),
            (.seconds(3_599), "59m 59s"), (.seconds(3_720), "1h 02m"), (.seconds(86_399), "23h 59m"),
            (.seconds(86_400), "1d 00h"), (.seconds(183_600), "2d 03h"),
            (.seconds(Int64.max), "106751991167300d 15h"),
            (.seconds(Int64.min), "0s"),
        ] as [(Duration, String)]
    )
    func `durations are written in two units`(duration: Duration, text: String) {
        #expect(DurationText.format(duration) == text)
    }

    @Test(arguments: [1, 59, 60, 3_600, 86_400, 1_000_000] as [Int64])
    func `what is written can be read`(seconds: Int64) {
        #expect(DurationText.parse(DurationText.format(.seconds(seconds))) != nil)
    }
}

@Suite struct URLRedactionTests {
    @Test(arguments: [
        ("https://example.org/a", "https://example.org/a"),
        ("https://u:p@example.org/a", "https://example.org/a"),
        ("https://u@example.org", "https://example.org"),
        ("https://u:p@w@example.org/a@b", "https://example.org/a@b"),
        ("https://example.org/a@b", "https://example.org/a@b"),
        ("https://example.org:8443/@scope/x", "https://example.org:8443/@scope/x"),
        ("https://example.org/a#frag", "https://example.org/a"),
        ("https://example.org/a?", "https://example.org/a?"),
        ("https://example.org/a?k=v", "https://example.org/a?k=***"),
        ("https://e.org/a?k=v&l=w=x&m", "https://e.org/a?k=***&l=***&***"),
        ("https://e.org/a?k=&&l=1#x?y=z", "https://e.org/a?k=***&&l=***"),
        ("https://e.org/a?secret", "https://e.org/a?***"),
        ("https://e.org/a?k=1;token=2", "https://e.org/a?k=***"),
        ("https://e.org?u@x=1", "https://e.org?u@x=***"),
        ("https://u:p@[::1]:80/a", "https://[::1]:80/a"), ("https://[::1]/a@b", "https://[::1]/a@b"),
        ("https://[fe80::a]/a@b", "https://[fe80::a]/a@b"), ("u:p@example.org/a", "example.org/a"),
        ("//u:p@e.org/a", "//e.org/a"),
        ("https:/u:p@e.org/a", "https:/e.org/a"), ("https:///u:p@e.org/a", "https:///e.org/a"),
        ("https:u:p@e.org", "e.org"),
        ("https://u:pa/ss@e.org/a", "https://e.org/a"),
        ("https://u:pa?ss@e.org/a?k=v", "https://e.org/a?k=***"),
        ("https://u:pa#ss@e.org/a", "https://e.org/a"), ("https:\\\\u:p@e.org\\a", "https:\\\\e.org\\a"),
        (" https://u:p@e.org/", "e.org/"),
        ("", ""), ("?", "?"), ("#", ""), ("@", ""), ("://@", "://"), ("https://", "https://"),
        ("https://é:ü@e.org/ß", "https://e.org/ß"),
    ])
    func `secrets are taken out`(url: String, expected: String) {
        #expect(URLRedaction.redact(url) == expected)
    }

    @Test(arguments: nastyTexts)
    func `no text is too strange`(text: String) {
        _ = URLRedaction.redact(text)
        _ = URLRedaction.redact("https://" + text + "@e.org/" + text + "?" + text)
        #expect(!URLRedaction.linkMayExpire(text))
    }

    @Test(arguments: [
        ("https://b.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature=x", true),
        ("https://e.org/k?x-amz-expires=60", true),
        ("https://e.org/k?a=b&Expires=1700000000", true), ("https://e.org/k?X-Goog-Expires=60", true),
        ("https://e.org/k?sv=1&se=2026-01-01&sig=x", true), ("https://e.org/k?exp=1", true),
        ("https://e.org/k?a;expires=1", true),
        ("https://e.org/k?X%2DAmz%2DExpires=60", true), ("https://e.org/k", false),
        ("https://e.org/k?", false),
        ("https://e.org/k?expires", false), ("https://e.org/expires=1", false),
        ("https://e.org/k#?expires=1", false),
        ("https://e.org/k?a=expires", false), ("https://e.org/k?sense=1&explain=2", false),
    ])
    func `links that die are known by their query`(url: String, mayExpire: Bool) {
        #expect(URLRedaction.linkMayExpire(url) == mayExpire)
    }
}
