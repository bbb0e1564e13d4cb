import Testing

@testable import FerryCore

@Suite struct UploadVerdictTests {
    @Test(
        arguments: [
            (200, true, "done"), (201, true, "done"), (204, true, "done"), (200, false, "bad"),
            (201, false, "bad"),
            (206, true, "bad"), (207, true, "bad"), (403, true, "403"), (413, false, "413"),
            (409, true, "409"),
        ]
    )
    func `success is a 2xx after all of the body, and nothing else`(
        status: Int,
        sentAll: Bool,
        expected: String
    ) {
        let step = UploadVerdict.judge(
            UploadAnswer(head: ResponseHead(status: status), sentAll: sentAll),
            isRepeatable: true,
            hasKey: false,
            host: "h"
        )
        switch step {
        case .done: #expect(expected == "done")
        case .failed(.badResponse): #expect(expected == "bad")
        case .failed(.status(let status, _, _, _)): #expect(expected == "\(status)")
        case .failed, .call: Issue.record("\(step)")
        }
    }

    @Test(
        arguments: [
            (500, nil, true, false), (502, nil, true, false), (503, nil, true, false),
            (503, Duration.seconds(3), true, true), (500, nil, false, true), (429, nil, true, true),
        ] as [(Int, Duration?, Bool, Bool)]
    )
    func `a POST that may have been carried out is not repeated`(
        status: Int,
        retryAfter: Duration?,
        sentAll: Bool,
        isRetried: Bool
    ) throws {
        for (isRepeatable, expected) in [(false, isRetried), (true, true)] {
            let answer = UploadAnswer(
                head: ResponseHead(status: status),
                retryAfter: retryAfter,
                sentAll: sentAll
            )
            let step = UploadVerdict.judge(answer, isRepeatable: isRepeatable, hasKey: false, host: "h")
            guard case .failed(let cause) = step else {
                Issue.record("\(step)")
                return
            }
            if case .fail(let reason, let advice) = RetryPlan.classify(cause) {
                #expect(!expected)
                #expect(reason == .server)
                #expect(advice?.contains("retry") == true)
            } else {
                #expect(expected)
            }
        }
    }

    @Test func `a key makes 409 a matter of waiting`() {
        let answer = UploadAnswer(head: ResponseHead(status: 409))
        let step = UploadVerdict.judge(answer, isRepeatable: true, hasKey: true, host: "h")
        guard case .failed(.busy) = step else {
            Issue.record("\(step)")
            return
        }
    }

    @Test(
        arguments: [
            (307, "POST", true, false, UploadRedirect.again), (308, "PUT", true, true, .again),
            (301, "PUT", true, true, .again), (302, "PUT", true, false, .again),
            (302, "POST", true, true, .look), (301, "POST", true, false, .again),
            (302, "POST", false, true, .again),
            (303, "PUT", true, true, .look), (303, "POST", true, true, .look),
            (303, "OPTIONS", false, true, .again),
            (303, "POST", true, false, .broken("the server redirected with 303 before it had the body")),
            (300, "PUT", true, true, nil), (304, "PUT", true, true, nil), (200, "PUT", true, true, nil),
        ] as [(Int, String, Bool, Bool, UploadRedirect?)]
    )
    func `what a redirect means for a body`(
        status: Int,
        method: String,
        hasContent: Bool,
        sentAll: Bool,
        expected: UploadRedirect?
    ) {
        let judged = UploadRedirect.judge(
            status: status,
            method: method,
            hasContent: hasContent,
            sentAll: sentAll
        )
        #expect(judged == expected)
    }

    @Test func `a source is the same until size, date or inode differ`() {
        let then = SourceIdentity(path: "/a", device: 1, inode: 2, size: 3, modifiedNanoseconds: 4)
        #expect(then.change(to: then) == nil)
        var now = then
        now.device = 9
        #expect(then.change(to: now) == nil, "device numbers change with a boot")
        for (key, value, word) in [
            (\SourceIdentity.inode, 9, "replaced"), (\.size, 9, "longer"), (\.size, 1, "shorter"),
            (\.modifiedNanoseconds, 9, "changed"),
        ] as [(WritableKeyPath<SourceIdentity, Int64>, Int64, String)] {
            var now = then
            now[keyPath: key] = value
            #expect(then.change(to: now)?.contains(word) == true)
        }
    }

    @Test(arguments: [("a b", "a%20b"), ("ü/", "%C3%BC%2F"), ("a-._~9", "a-._~9"), ("%", "%25")])
    func `a name becomes one segment of a path`(name: String, expected: String) {
        #expect(URLPath.encoded(name) == expected)
    }
}
