import FerryCore
import FerryTestSupport
import Glibc
import Testing

@testable import FerryCLI

@Suite struct UploadTargetTests {
    static let targets: [(String, String, String)] = [
        ("https://h/d/", "a.txt", "https://h/d/a.txt"), ("https://h/", "a", "https://h/a"),
        ("https://h", "a", "https://h/a"), ("https://h:8443?q=/x", "a", "https://h:8443/a?q=/x"),
        ("https://h/d/?token=a/b#f", "a b", "https://h/d/a%20b?token=a/b#f"),
        (
            "https://h/d/", "naïve 文?#%/&+;=.bin",
            "https://h/d/na%C3%AFve%20%E6%96%87%3F%23%25%2F%26%2B%3B%3D.bin"
        ),
        ("https://h/d/", "a\r\nb\"'~-_", "https://h/d/a%0D%0Ab%22%27~-_"), ("h/d/", "a", "h/d/a"),
    ]

    @Test(arguments: targets)
    func `a folder gets the file's name, percent-encoded, before the query`(
        url: String,
        name: String,
        expected: String
    ) {
        #expect(UploadTarget.isFolder(url))
        #expect(UploadTarget.adding(name, to: url) == expected)
    }

    @Test(arguments: [
        "https://h/d", "https://h/d?x=/", "https://h/d#/", "https://h/d/a?", "h/d", "https://h/d/..",
        "https://h/%2F",
    ])
    func `what does not end in a slash is the whole name`(url: String) {
        #expect(!UploadTarget.isFolder(url))
    }
}

@Suite struct FormOptionTests {
    static let good: [(FormOption, FormPart)] = [
        (FormOption(id: .form, value: "a=1"), FormPart(name: "a", content: .value("1"))),
        (FormOption(id: .form, value: "a="), FormPart(name: "a", content: .value(""))),
        (FormOption(id: .form, value: "a=b=c;type=x"), FormPart(name: "a", content: .value("b=c;type=x"))),
        (
            FormOption(id: .form, value: "a=@/etc/passwd"),
            FormPart(name: "a", content: .value("@/etc/passwd"))
        ),
        (FormOption(id: .form, value: "a\r\n\"=x\r\n"), FormPart(name: "a\r\n\"", content: .value("x\r\n"))),
        (
            FormOption(id: .formFile, value: "f=/a/b.txt"),
            FormPart(name: "f", content: .file(path: "/a/b.txt"))
        ),
        (
            FormOption(id: .formFile, value: "f=a=b, <c>"),
            FormPart(name: "f", content: .file(path: "a=b, <c>"))
        ),
        (
            FormOption(id: .formFile, value: "f=a;type=text/x;filename=n \"o\""),
            FormPart(name: "f", content: .file(path: "a"), contentType: "text/x", fileName: "n \"o\"")
        ),
        (
            FormOption(id: .formFile, value: "f=a;filename=n;type=\"text/x; charset=utf-8\""),
            FormPart(
                name: "f",
                content: .file(path: "a"),
                contentType: "text/x; charset=utf-8",
                fileName: "n"
            )
        ),
        (
            FormOption(id: .formFile, value: "f=\"a;b\\\"\\\\c\\d\";filename=\"x;y\""),
            FormPart(name: "f", content: .file(path: "a;b\"\\c\\d"), fileName: "x;y")
        ),
        (FormOption(id: .formFile, value: "f=a\"b"), FormPart(name: "f", content: .file(path: "a\"b"))),
        (
            FormOption(id: .formFile, value: "f=e\u{301};filename=\u{301}"),
            FormPart(name: "f", content: .file(path: "e\u{301}"), fileName: "\u{301}")
        ),
    ]

    @Test(arguments: good)
    func `a field is read`(option: FormOption, part: FormPart) throws {
        #expect(try option.part() == part)
    }

    static let bad: [(FormOption, String)] = [
        (
            FormOption(id: .form, value: "secret"),
            "--form: a field looks like NAME=VALUE, and this one has no equals sign"
        ),
        (FormOption(id: .form, value: "=secret"), "--form: the field before the equals sign has no name"),
        (
            FormOption(id: .formFile, value: "a"),
            "--form-file: a field looks like NAME=PATH, and this one has no equals sign"
        ),
        (FormOption(id: .formFile, value: "=a"), "--form-file: the field before the equals sign has no name"),
        (FormOption(id: .formFile, value: "f="), "--form-file f: PATH is empty"),
        (FormOption(id: .formFile, value: "f=;type=a/b"), "--form-file f: PATH is empty"),
        (FormOption(id: .formFile, value: "f=\"\""), "--form-file f: PATH is empty"),
        (
            FormOption(id: .formFile, value: "f=-"),
            "--form-file f: standard input cannot be part of a form; only 'ferry put -' sends it"
        ),
        (
            FormOption(id: .formFile, value: "f=a;b"),
            "--form-file f: after ';' come type= or filename=, not 'b'; "
                + "a value that holds ';' stands in double quotes"
        ),
        (
            FormOption(id: .formFile, value: "f=a;type=text/plain;charset=utf-8"),
            "--form-file f: after ';' come type= or filename=, not 'charset'; "
                + "a value that holds ';' stands in double quotes"
        ),
        (
            FormOption(id: .formFile, value: "f=a;type=image"),
            "--form-file f: 'image' is no media type such as image/png"
        ),
        (
            FormOption(id: .formFile, value: "f=a;type=a/b\r\nX: y"),
            "--form-file f: 'a/b\\u{D}\\u{A}X: y' is no media type such as image/png"
        ),
        (FormOption(id: .formFile, value: "f=a;filename="), "--form-file f: filename= is empty"),
        (
            FormOption(id: .formFile, value: "f=\"a"),
            "--form-file f: the double quote before PATH is not closed"
        ),
        (
            FormOption(id: .formFile, value: "f=\""),
            "--form-file f: the double quote before PATH is not closed"
        ),
        (
            FormOption(id: .formFile, value: "f=\"a\\\""),
            "--form-file f: the double quote before PATH is not closed"
        ),
        (
            FormOption(id: .formFile, value: "f=\"a\"b"),
            "--form-file f: after a closing double quote comes ';' or nothing"
        ),
    ]

    @Test(arguments: bad)
    func `a field that is none is one clear sentence`(option: FormOption, message: String) {
        let error = #expect(throws: FerryError.self) { try option.part() }
        #expect(error == .usage(message))
        #expect(!message.contains("secret"))
    }
}

@Suite struct UploadArgumentsTests {
    /// Reads a command line in a folder that holds files, and things that are none.
    private func order(_ words: [String]) throws -> (order: UploadArguments, folder: String) {
        try withTemporaryFolder { folder in
            for name in ["a", "b c", "e;f", "-"] { try folder.write(name, "content") }
            try folder.makeFolder("d")
            try folder.write("d/a", "another")
            mkfifo(folder.file("pipe"), 0o600)
            symlink("a", folder.file("link"))
            symlink("nowhere", folder.file("dangling"))
            let caller = surroundings(directory: folder.path)
            switch try invocation(words, in: caller) {
            case .put(let order), .addUpload(let order): return (order, folder.path)
            default: throw TestSupportError("another command")
            }
        }
    }

    @Test(arguments: [["put", "a", "https://h/x"], ["add", "--upload", "a", "https://h/x"]])
    func `a file goes to its URL`(words: [String]) throws {
        let (order, folder) = try self.order(words)
        #expect(
            order.requests == [
                JobRequest(
                    kind: .upload,
                    url: "https://h/x",
                    directory: "/",
                    umask: 0o027,
                    foreground: words[0] == "put",
                    upload: UploadOrder(body: .file(path: "\(folder)/a"))
                )
            ]
        )
        #expect(!order.readsInput)
    }

    @Test func `what uploads share with downloads is kept with each`() throws {
        let (order, folder) = try self.order([
            "put", "-H", "X: 1", "-H", "content-type: text/x", "--allow-http", "--attempts", "3",
            "--protocol", "put",
            "--method=PUT", "--idempotency-key", "k-1", "link", "b c", "http://h/d/?t=1",
        ])
        #expect(order.requests.map(\.url) == ["http://h/d/link?t=1", "http://h/d/b%20c?t=1"])
        for request in order.requests {
            #expect(request.headers == [RequestHeader(name: "X", value: "1")])
            #expect(request.allowHTTP)
            #expect(request.attempts == 3)
        }
        #expect(
            order.requests.map(\.upload)
                == ["link", "b c"].map { name in
                    UploadOrder(
                        body: .file(path: "\(folder)/\(name)"),
                        transport: .put,
                        method: "PUT",
                        contentType: "text/x",
                        idempotencyKey: "k-1",
                        nameWasAdded: true
                    )
                }
        )
    }

    @Test func `a form keeps the order of its parts over both options`() throws {
        let (order, folder) = try self.order([
            "put", "--form", "z=1", "--form-file", "f=a;type=text/x", "--form", "a=2", "--form-file",
            "f=\"e;f\"",
            "https://h/d/",
        ])
        #expect(order.requests.map(\.url) == ["https://h/d/"])
        #expect(
            order.requests.first?.upload
                == UploadOrder(
                    body: .form([
                        FormPart(name: "z", content: .value("1")),
                        FormPart(name: "f", content: .file(path: "\(folder)/a"), contentType: "text/x"),
                        FormPart(name: "a", content: .value("2")),
                        FormPart(name: "f", content: .file(path: "\(folder)/e;f")),
                    ])
                )
        )
    }

    @Test func `data goes to the URL as it stands, standard input is spooled, tus adds no name`() throws {
        let (data, folder) = try self.order(["put", "--data-file", "a", "--method", "PATCH", "https://h/d/"])
        #expect(data.requests.map(\.url) == ["https://h/d/"])
        #expect(
            data.requests.first?.upload == UploadOrder(body: .file(path: "\(folder)/a"), method: "PATCH")
        )
        let (input, _) = try self.order(["put", "-", "https://h/x"])
        #expect(input.readsInput)
        #expect(input.requests.first?.upload?.body == .spool(path: ""))
        let (dash, place) = try self.order(["put", "./-", "https://h/d/"])
        #expect(dash.requests.first?.upload?.body == .file(path: "\(place)/-"))
        let (tus, _) = try self.order([
            "add", "--upload", "a", "--upload", "b c", "--protocol", "tus", "https://h/d",
        ])
        #expect(tus.requests.map(\.url) == ["https://h/d", "https://h/d"])
        #expect(tus.requests.allSatisfy { $0.upload?.nameWasAdded == false })
    }

    @Test func `auto makes a key up, another one each time`() throws {
        let keys = try (0..<2).map { _ in
            try self.order(["put", "--idempotency-key", "auto", "a", "https://h/x"]).order.requests.first?
                .upload?
                .idempotencyKey
        }
        #expect(keys[0]?.utf8.count == 32)
        #expect(keys[0] != keys[1])
    }

    @Test func `the answer's file is named by an absolute path`() throws {
        let (order, folder) = try self.order(["put", "--response", "d/r", "a", "https://h/x"])
        #expect(order.requests.first?.upload?.responsePath == "\(folder)/d/r")
    }

    static let bad: [([String], String)] = [
        (["put"], "ferry put needs a FILE and a URL"),
        (["put", "a"], "ferry put needs a URL after the FILE"),
        (["put", "https://h/x"], "ferry put needs a FILE before the URL"),
        (["put", "https://h/x", "a"], "ferry put: the URL comes last: ferry put FILE... URL"),
        (["put", "a", ""], "ferry put needs one URL"),
        (["put", "", "https://h/x"], "ferry put: the name of a file is empty"),
        (["put", "missing", "https://h/x"], "'missing' does not exist"),
        (["put", "dangling", "https://h/x"], "'dangling' does not exist"),
        (["put", "a/", "https://h/x"], "'a/' cannot be used: Not a directory"),
        (["put", "a/b", "https://h/x"], "'a/b' cannot be used: Not a directory"),
        (["put", "d", "https://h/x"], "'d' is a folder, and ferry sends files"),
        (["put", "d/", "https://h/"], "'d/' is a folder, and ferry sends files"),
        (
            ["put", "pipe", "https://h/x"],
            "'pipe' is a pipe, and only 'ferry put -' reads one: standard input"
        ),
        (["put", "/dev/zero", "https://h/x"], "'/dev/zero' is a device, and ferry sends files"),
        (["put", "mis\u{1B}sing", "https://h/x"], "'mis\\u{1B}sing' does not exist"),
        (
            ["put", "https://h/y", "https://h/x"],
            "'https://h/y' is a URL, where the file to send is expected; the URL comes last"
        ),
        (
            ["put", "a", "b c", "https://h/x"],
            "2 files need a URL that ends in '/', to which their names are added"
        ),
        (
            ["put", "-", "https://h/d/"],
            "standard input has no name to add to a URL that ends in '/'; name the file in the URL"
        ),
        (
            ["put", "-", "ftp://h/x"],
            "standard input goes to a URL that begins with https:// or http://"
        ),
        (["put", "-", "h/x"], "standard input goes to a URL that begins with https:// or http://"),
        (
            ["put", "a", "-", "https://h/d/"],
            "ferry put: - (standard input) cannot be sent together with files"
        ),
        (["put", "-o", "f", "a", "https://h/x"], "ferry put has no option -o; ferry get has"),
        (
            ["put", "--form", "a", "https://h/x"],
            "--form: a field looks like NAME=VALUE, and this one has no equals sign"
        ),
        (
            ["put", "--form", "a=1", "--data-file", "a", "https://h/x"],
            "--form and --form-file and --data-file exclude each other"
        ),
        (
            ["put", "--form", "a=1", "a", "https://h/x"],
            "ferry put: with --form and --form-file there is no other FILE, but 'a' was given"
        ),
        (
            ["put", "--data-file", "a", "a", "https://h/x"],
            "ferry put: with --data-file there is no other FILE, but 'a' was given"
        ),
        (["put", "--form", "a=1"], "ferry put needs one URL"),
        (["put", "--form-file", "f=missing", "https://h/x"], "--form-file f: 'missing' does not exist"),
        (
            ["put", "--form-file", "f=d", "https://h/x"],
            "--form-file f: 'd' is a folder, and ferry sends files"
        ),
        (["put", "--data-file", "missing", "https://h/x"], "--data-file: 'missing' does not exist"),
        (
            ["put", "--data-file", "-", "https://h/x"],
            "--data-file: only 'ferry put - URL' reads standard input"
        ),
        (
            ["put", "--data-file", "a", "--data-file", "a", "https://h/x"],
            "ferry put takes only one --data-file"
        ),
        (
            ["put", "--protocol", "tsu", "a", "https://h/x"],
            "--protocol: 'tsu' is unknown; did you mean 'tus'?"
        ),
        (
            ["put", "--protocol", "ftp", "a", "https://h/x"],
            "--protocol: 'ftp' is unknown; it must be auto, put, post, multipart, tus, ietf, s3, gcs or webdav"
        ),
        (
            ["put", "--protocol", "s3", "a", "https://h/x"],
            "--protocol s3 is not supported by this version; 'ferry help put' lists what is"
        ),
        (
            ["put", "--protocol", "multipart", "a", "https://h/x"],
            "--protocol multipart sends a form, which --form and --form-file describe"
        ),
        (
            ["put", "--protocol", "tus", "--form", "a=1", "https://h/x"],
            "--protocol tus sends a file, not a form; 'ferry put FILE URL' does that"
        ),
        (
            ["put", "--method", "PU T", "a", "https://h/x"],
            "--method: 'PU T' is no method; it is one word such as PUT or POST"
        ),
        (
            ["put", "--method", "post", "a", "https://h/x"],
            "--method: methods are case-sensitive; did you mean 'POST'?"
        ),
        (
            ["put", "--method", "get", "a", "https://h/x"],
            "--method: GET sends no body; an upload needs one such as PUT or POST"
        ),
        (
            ["put", "--method", "POST", "--protocol", "put", "a", "https://h/x"],
            "--method POST: --protocol put uses PUT"
        ),
        (
            ["put", "--method", "PUT", "--protocol", "tus", "a", "https://h/x"],
            "--method PUT: --protocol tus uses the methods of that protocol"
        ),
        (
            ["put", "--idempotency-key", "a\"b", "a", "https://h/x"],
            "--idempotency-key: a key has up to 255 visible ASCII characters, without \" and \\"
        ),
        (
            ["put", "-H", "Content-Length: 3", "a", "https://h/x"],
            "-H: Content-Length follows from the file and cannot be chosen"
        ),
        (
            ["put", "-H", "Content-Type: x", "a", "https://h/x"],
            "-H: the value of Content-Type is no media type such as image/png"
        ),
        (
            ["put", "-H", "Content-Type: a/b", "--form", "a=1", "https://h/x"],
            "-H: the Content-Type of a form holds its boundary and cannot be chosen"
        ),
        (
            ["put", "--response", "-", "a", "https://h/x"],
            "--response - is not possible: the answer goes to a file; 'ferry show' prints it"
        ),
        (["put", "--response", "d", "a", "https://h/x"], "--response: 'd' is no file"),
        (["put", "--response", "x/", "a", "https://h/x"], "--response: 'x/' names a folder"),
        (["put", "--response", "link", "a", "https://h/x"], "--response: 'link' is the file that is sent"),
        (
            ["put", "--response", "a", "--form-file", "f=a", "https://h/x"],
            "--response: 'a' is the file that is sent"
        ),
        (
            ["put", "--response", "r", "a", "b c", "https://h/"],
            "--response names one file, but there are 2 uploads"
        ),
        (["add", "--upload", "a"], "ferry add --upload needs one URL"),
        (["add", "--form", "a=1"], "ferry add needs one URL"),
        (
            ["add", "--upload", "--form-file", "f=a", "https://h/x"],
            "--upload needs a FILE, and '--form-file' is an option; "
                + "there is no --upload with it: ferry add --form-file NAME=PATH URL"
        ),
        (
            ["add", "--upload", "--data-file", "a", "https://h/x"],
            "--upload needs a FILE, and '--data-file' is an option; "
                + "there is no --upload with it: ferry add --data-file FILE URL"
        ),
        (
            ["add", "--upload", "--group", "g", "https://h/x"],
            "--upload needs a FILE, and '--group' is an option; ./--group is a file of that name"
        ),
        (["add", "--upload", "a", "https://h/x", "https://h/y"], "ferry add --upload needs one URL"),
        (
            ["add", "--upload", "a", "-o", "f", "https://h/x"],
            "--output is for downloads, and this is an upload"
        ),
        (
            ["add", "--upload", "a", "--if-exists", "skip", "https://h/x"],
            "--if-exists is for downloads, and this is an upload"
        ),
        (
            ["add", "--protocol", "put", "https://h/x"],
            "--protocol is for uploads; 'ferry add --upload FILE URL' queues one"
        ),
        (["get", "--form", "a=1", "https://h/x"], "ferry get has no option --form; ferry put has"),
    ]

    @Test(arguments: bad)
    func `wrong use of an upload is one clear sentence and status 2`(words: [String], message: String) {
        let error = #expect(throws: FerryError.self) { try self.order(words) }
        #expect(error == .usage(message))
    }

    @Test func `two files of one name cannot go to one folder, and the same file can`() throws {
        let error = #expect(throws: FerryError.self) { try self.order(["put", "a", "d/a", "https://h/d/"]) }
        #expect(error?.message.hasSuffix("have the same name, and would both become 'a' there") == true)
        #expect(try self.order(["put", "a", "./a", "https://h/d/"]).order.requests.count == 2)
    }

    @Test(.enabled(if: geteuid() != 0))
    func `a file that cannot be read is refused`() throws {
        try withTemporaryFolder { folder in
            try folder.write("secret", "x")
            chmod(folder.file("secret"), 0)
            #expect(throws: FerryError.usage("'secret' cannot be read: Permission denied")) {
                try invocation(["put", "secret", "https://h/x"], in: surroundings(directory: folder.path))
            }
        }
    }

    @Test func `arguments that are no UTF-8 are refused`() throws {
        func words(_ arguments: [[UInt8]]) throws -> [String] {
            var pointers = arguments.map { bytes in
                strdup(bytes.map { CChar(bitPattern: $0) } + [0])
            }
            defer { for pointer in pointers { free(pointer) } }
            pointers.append(nil)
            return try FerryCommand.words(pointers)
        }
        #expect(try words([Array("ferry".utf8), Array("gänse".utf8)]) == ["gänse"])
        #expect(try words([Array("ferry".utf8)]).isEmpty)
        #expect(try words([]).isEmpty)
        let error = #expect(throws: FerryError.self) {
            try words([Array("ferry".utf8), [0x63, 0x61, 0x66, 0xE9]])
        }
        #expect(
            error
                == .usage(
                    "'caf\u{FFFD}' is not UTF-8, which ferry needs; a link can give a file a name that is"
                )
        )
    }
}
