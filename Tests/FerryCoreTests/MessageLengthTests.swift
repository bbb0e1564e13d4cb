import FerryCore
import Testing

@Suite struct MessageLengthTests {
    @Test(
        arguments: [
            (head(200), .untilClose), (head(200, ["Content-Length": "0"]), .length(0)),
            (head(200, ["content-length": "5"]), .length(5)),
            (head(200, ["Content-Length": "5, 5"]), .length(5)),
            (head(200, ["Content-Length": "5", "Content-Length": "5"]), .length(5)),
            (head(200, ["Content-Length": "005"]), .length(5)),
            (head(200, ["Content-Length": "999999999999999999"]), .length(999_999_999_999_999_999)),
            (head(200, ["Transfer-Encoding": "chunked"]), .chunked),
            (head(200, ["Transfer-Encoding": "Chunked"]), .chunked),
            (head(200, ["Transfer-Encoding": "gzip, chunked"]), .chunked),
            (head(200, ["Transfer-Encoding": "gzip", "Transfer-Encoding": "chunked"]), .chunked),
            (head(200, ["Transfer-Encoding": "gzip"]), .untilClose),
            (head(200, ["Transfer-Encoding": "chunked, gzip"]), .untilClose),
            (head(200, ["Transfer-Encoding": "identity", "Content-Length": "5"]), .length(5)),
            (head(200, ["Transfer-Encoding": "chunked", "Content-Length": "5"]), .chunked),
            (head(200, ["Content-Length": "+5", "Transfer-Encoding": "chunked"]), .chunked),
            (head(204, ["Content-Length": "5"]), .none), (head(304, ["Content-Length": "5, 6"]), .none),
            (head(103), .none), (head(404, ["Content-Length": "12"]), .length(12)),
        ] as [(ResponseHead, MessageLength)]
    )
    func `the end of the body is told by the head`(head: ResponseHead, expected: MessageLength) {
        #expect(MessageLength(head: head) == expected)
    }

    @Test(arguments: [
        ["5, 6"], ["5", "6"], ["+5"], ["-5"], ["5abc"], ["abc"], [""], ["5,"], [",5"], ["5 5"], ["0x5"],
        ["5.0"],
        ["1000000000000000000"], ["9223372036854775808"], ["5", "+5"], ["٥"],
    ])
    func `a length that cannot be believed is a contradiction`(values: [String]) {
        let fields = values.map { ResponseHead.Field(name: "Content-Length", value: $0) }
        let length = MessageLength(head: ResponseHead(status: 200, fields: fields))
        guard case .contradictory(let what) = length else {
            Issue.record("\(length)")
            return
        }
        #expect(!what.isEmpty)
    }
}
