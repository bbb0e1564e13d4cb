import FerryCore
import Testing

@Suite struct ContentRangeTests {
    @Test(
        arguments: [
            ("bytes 0-9/10", .satisfied(first: 0, last: 9, total: 10)),
            ("bytes 5-5/6", .satisfied(first: 5, last: 5, total: 6)),
            ("BYTES 100-167/168", .satisfied(first: 100, last: 167, total: 168)),
            ("bytes  3-4/*", .satisfied(first: 3, last: 4, total: nil)),
            (" bytes 3-4/9\t", .satisfied(first: 3, last: 4, total: 9)),
            ("bytes */0", .unsatisfied(total: 0)),
            ("bytes */1234", .unsatisfied(total: 1_234)),
            (
                "bytes 999999999999999997-999999999999999998/999999999999999999",
                .satisfied(
                    first: 999_999_999_999_999_997,
                    last: 999_999_999_999_999_998,
                    total: 999_999_999_999_999_999
                )
            ),
        ] as [(String, ContentRange)]
    )
    func `a valid Content-Range is read`(text: String, expected: ContentRange) {
        #expect(ContentRange(text) == expected)
    }

    @Test(
        arguments: [
            "bytes 9-0/10", "bytes 0-10/10", "bytes 0-11/10", "bytes 0-0/0", "bytes */*", "bytes *",
            "bytes */-1",
            "bytes +0-9/10", "bytes 0-+9/10", "bytes 0-9/+10", "bytes -9/10", "bytes 0-/10", "bytes 0-9",
            "bytes 0-9/",
            "bytes 0-9/10, 20-29/30", "bytes 0-4,6-9/10", "bytes=0-9/10", "bytes0-9/10", "bytes: 0-9/10",
            "items 0-9/10", "byte 0-9/10", "bytes 0 - 9/10", "bytes 0-9 / 10", "bytes 0-9/10/11",
            "bytes 0-9-10/11",
            "bytes 0-1000000000000000000/*", "bytes 0-9/1000000000000000000", "bytes 0x0-9/10",
            "bytes ٠-٩/10",
        ] + nastyTexts
    )
    func `anything else is no Content-Range`(text: String) {
        #expect(ContentRange(text) == nil)
    }
}
