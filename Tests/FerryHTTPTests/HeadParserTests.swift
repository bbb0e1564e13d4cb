import FerryCore
import Testing

@testable import FerryHTTP

@Suite struct HeadParserTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let lines: [String]
        let head: ResponseHead?
        var trailers: [ResponseHead.Field] = []
    }

    private static func head(
        _ status: Int,
        reason: String = "OK",
        version: String = "1.1",
        _ fields: [(String, String)] = []
    ) -> ResponseHead {
        ResponseHead(
            status: status,
            httpVersion: version,
            reasonPhrase: reason,
            fields: fields.map { ResponseHead.Field(name: $0.0, value: $0.1) }
        )
    }

    @Test(arguments: [
        Case(
            testDescription: "plain",
            lines: ["HTTP/1.1 200 OK", "A: 1", ""],
            head: head(200, [("A", "1")])
        ),
        Case(testDescription: "no end yet", lines: ["HTTP/1.1 200 OK", "A: 1"], head: nil),
        Case(testDescription: "no reason", lines: ["HTTP/1.1 200", ""], head: head(200, reason: "")),
        Case(testDescription: "empty reason", lines: ["HTTP/1.1 200 ", ""], head: head(200, reason: "")),
        Case(
            testDescription: "a reason of words",
            lines: ["HTTP/1.1 404 Not Found Here", ""],
            head: head(404, reason: "Not Found Here")
        ),
        Case(testDescription: "HTTP/1.0", lines: ["HTTP/1.0 200 OK", ""], head: head(200, version: "1.0")),
        Case(
            testDescription: "HTTP/2",
            lines: ["HTTP/2 200 ", "a: 1", ""],
            head: head(200, reason: "", version: "2", [("a", "1")])
        ),
        Case(testDescription: "no status", lines: ["HTTP/1.1", ""], head: head(0, reason: "")),
        Case(
            testDescription: "interim answers come first",
            lines: [
                "HTTP/1.1 100 Continue", "X: no", "", "HTTP/1.1 103 Early Hints", "Link: <a>", "",
                "HTTP/1.1 206 Partial", "Y: yes", "",
            ],
            head: head(206, reason: "Partial", [("Y", "yes")])
        ),
        Case(
            testDescription: "101 is final",
            lines: ["HTTP/1.1 101 Switching", ""],
            head: head(101, reason: "Switching")
        ),
        Case(
            testDescription: "repeated fields stay in order",
            lines: ["HTTP/1.1 200 OK", "A: 1", "B: 2", "a: 3", ""],
            head: head(200, [("A", "1"), ("B", "2"), ("a", "3")])
        ),
        Case(
            testDescription: "white space around a value goes",
            lines: ["HTTP/1.1 200 OK", "A: \t  one two \t", "B:", "C:x", ""],
            head: head(200, [("A", "one two"), ("B", ""), ("C", "x")])
        ),
        Case(
            testDescription: "a value with colons",
            lines: ["HTTP/1.1 200 OK", "A: b:c:d", ""],
            head: head(200, [("A", "b:c:d")])
        ),
        Case(
            testDescription: "folded lines are joined",
            lines: ["HTTP/1.1 200 OK", "A: one", "  two ", "\tthree", ""],
            head: head(200, [("A", "one two three")])
        ),
        Case(
            testDescription: "a folded line without one before it is dropped",
            lines: ["HTTP/1.1 200 OK", " lost", "A: 1", ""],
            head: head(200, [("A", "1")])
        ),
        Case(
            testDescription: "a line without colon is dropped",
            lines: ["HTTP/1.1 200 OK", "nonsense", "A: 1", ""],
            head: head(200, [("A", "1")])
        ),
        Case(
            testDescription: "trailers are no part of the head",
            lines: ["HTTP/1.1 200 OK", "A: 1", "", "T: 2", "HTTP/1.1: odd", ""],
            head: head(200, [("A", "1")]),
            trailers: [
                ResponseHead.Field(name: "T", value: "2"), ResponseHead.Field(name: "HTTP/1.1", value: "odd"),
            ]
        ),
    ])
    func `blocks become one head`(_ item: Case) {
        for lineEnd in ["\r\n", "\n"] {
            var parser = HeadParser()
            var heads: [ResponseHead] = []
            for line in item.lines {
                if case .head(let head) = parser.take(Array((line + lineEnd).utf8)) { heads.append(head) }
            }
            #expect(heads == (item.head.map { [$0] } ?? []))
            #expect(parser.trailers == item.trailers)
        }
    }

    @Test func `values are UTF-8 or else Latin-1`() throws {
        var parser = HeadParser()
        _ = parser.take(Array("HTTP/1.1 200 OK\r\n".utf8))
        _ = parser.take(Array("A: größe\r\n".utf8))
        _ = parser.take(Array("B: gr".utf8) + [0xF6, 0xDF] + Array("e\r\n".utf8))
        guard case .head(let head) = parser.take(Array("\r\n".utf8)) else {
            Issue.record("there is no head")
            return
        }
        #expect(head.first("A") == "größe")
        #expect(head.first("B") == "größe")
    }
}

extension HeadParser {
    fileprivate mutating func take(_ line: [UInt8]) -> Event {
        line.withUnsafeBytes { self.take($0) }
    }
}
