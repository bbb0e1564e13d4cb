import FerryCore
import Glibc

/// The uploads that `put` or `add --upload` asks for.
struct UploadArguments: Sendable {
    /// One request an upload, in order; the one that sends standard input has an empty path yet.
    var requests: [JobRequest]
    /// Whether standard input is to be copied first.
    var readsInput: Bool

    /// The values of `--protocol`: the last three are known and not there yet.
    static let protocolWords = UploadProtocol.allCases.map(\.rawValue) + Self.laterProtocols
    private static let laterProtocols = ["s3", "gcs", "webdav"]

    /// Where the bodies come from.
    private enum Source {
        case files([UploadFile])
        case input
        case data(UploadFile)
        case form([FormPart])
    }

    /// Whether `add` is asked for an upload.
    static func isUpload(_ arguments: Arguments) -> Bool {
        [OptionID.upload, .form, .formFile, .dataFile].contains { arguments.has($0) }
    }

    /// Refuses options of uploads for a download.
    static func refuse(_ arguments: Arguments) throws(FerryError) {
        for option in OptionTable.upload where arguments.has(option.id) {
            throw .usage("--\(option.long) is for uploads; 'ferry add --upload FILE URL' queues one")
        }
    }

    /// Reads operands and options, and looks at the files.
    ///
    /// - Throws: A usage error of one sentence.
    init(_ arguments: Arguments, in surroundings: Surroundings) throws(FerryError) {
        try Self.refuseDownloads(arguments)
        let (source, url) = try Self.source(arguments, surroundings)
        var order = UploadOrder(body: .form([]))
        order.transport = try Self.transport(arguments, source)
        order.method = try Self.method(arguments, order.transport)
        order.idempotencyKey = try Self.idempotencyKey(arguments)

        var asTransfer = arguments
        asTransfer.operands = [url]
        guard var request = try TransferOrder(asTransfer, in: surroundings).requests.first else {
            throw .usage("\(Self.name(arguments)) needs a URL")
        }
        request.kind = .upload
        request.directory = "/"  // an upload has no folder, and the same one is the same from anywhere
        try Self.takeHeaders(&request, &order, source)

        var requests: [JobRequest] = []
        func add(_ body: UploadOrder.Body, adding name: String? = nil) {
            var next = request
            next.upload = order
            next.upload?.body = body
            if let name, order.transport != .tus, UploadTarget.isFolder(url) {
                next.url = UploadTarget.adding(name, to: url)
                next.upload?.nameWasAdded = true
            }
            requests.append(next)
        }
        switch source {
        case .files(let files):
            try Self.check(files, url, order.transport)
            for file in files { add(.file(path: file.path), adding: file.name) }
        case .input:
            guard order.transport == .tus || !UploadTarget.isFolder(url) else {
                throw .usage(
                    "standard input has no name to add to a URL that ends in '/'; name the file in the URL"
                )
            }
            // Else the service would say so only when all of the input was copied.
            guard ["https://", "http://"].contains(where: url.lowercased().hasPrefix) else {
                throw .usage("standard input goes to a URL that begins with https:// or http://")
            }
            add(.spool(path: ""))
        case .data(let file): add(.file(path: file.path))
        case .form(let parts): add(.form(parts))
        }
        if let response = arguments.value(.response) {
            guard requests.count == 1 else {
                throw .usage("--response names one file, but there are \(requests.count) uploads")
            }
            requests[0].upload?.responsePath = try Self.response(response, source, surroundings)
        }
        self.requests = requests
        if case .input = source { self.readsInput = true } else { self.readsInput = false }
    }

    private static func name(_ arguments: Arguments) -> String {
        if arguments.command == .put { return "ferry put" }
        return arguments.has(.upload) ? "ferry add --upload" : "ferry add"
    }

    /// Options that `add` takes and an upload has not.
    private static func refuseDownloads(_ arguments: Arguments) throws(FerryError) {
        for option in OptionTable.all where arguments.has(option.id) {
            guard option.commands.contains(.get), !option.commands.contains(.put) else { continue }
            throw .usage("--\(option.long) is for downloads, and this is an upload")
        }
    }

    private static func source(
        _ arguments: Arguments,
        _ surroundings: Surroundings
    ) throws(FerryError) -> (Source, url: String) {
        let name = Self.name(arguments)
        var files = arguments.values(.upload)
        var operands = arguments.operands
        for file in files { try Self.refuseOption(file) }
        if arguments.command == .put { files = Array(operands.dropLast()) }
        let data = arguments.values(.dataFile)
        let others = [
            arguments.form.isEmpty ? nil : "--form and --form-file", data.isEmpty ? nil : "--data-file",
        ].compactMap { $0 }
        guard others.count < 2 else { throw .usage("\(others[0]) and \(others[1]) exclude each other") }
        if let other = others.first {
            guard files.isEmpty else {
                throw .usage(
                    "\(name): with \(other) there is no other FILE, but '\(files[0].shown)' was given"
                )
            }
        } else if arguments.command == .put, operands.count < 2 {
            guard let operand = operands.first else { throw .usage("ferry put needs a FILE and a URL") }
            let missing = operand.contains("://") ? "a FILE before the URL" : "a URL after the FILE"
            throw .usage("ferry put needs \(missing)")
        }
        guard let url = operands.popLast(), !url.isEmpty, arguments.command == .put || operands.isEmpty else {
            throw .usage("\(name) needs one URL")
        }
        if arguments.command == .put, !url.contains("://"), operands.contains(where: { $0.contains("://") }) {
            throw .usage("ferry put: the URL comes last: ferry put FILE... URL")
        }
        guard data.count <= 1 else { throw .usage("\(name) takes only one --data-file") }
        if let file = data.first {
            guard file != "-" else {
                throw .usage("--data-file: only 'ferry put - URL' reads standard input")
            }
            return (.data(try UploadFile(file, option: "--data-file", in: surroundings)), url)
        }
        if !arguments.form.isEmpty { return (.form(try Self.parts(arguments.form, surroundings)), url) }
        if files.contains("-") {
            guard files.count == 1 else {
                throw .usage("\(name): - (standard input) cannot be sent together with files")
            }
            return (.input, url)
        }
        var found: [UploadFile] = []
        for file in files { found.append(try UploadFile(file, in: surroundings)) }
        return (.files(found), url)
    }

    /// Refuses an option in the place of the FILE of `--upload`, which a form does not need.
    private static func refuseOption(_ file: String) throws(FerryError) {
        guard file.hasPrefix("--") else { return }
        let name = String(file.dropFirst(2).prefix { $0 != "=" })
        guard let option = OptionTable.long(name, for: .add) else { return }
        let isForm = [OptionID.form, .formFile, .dataFile].contains(option.id)
        let usage = "--\(option.long)" + (option.valueName.map { " \($0)" } ?? "")
        let help =
            isForm
            ? "there is no --upload with it: ferry add \(usage) URL"
            : "./\(file.shown) is a file of that name"
        throw .usage("--upload needs a FILE, and '--\(option.long)' is an option; \(help)")
    }

    private static func parts(
        _ options: [FormOption],
        _ surroundings: Surroundings
    ) throws(FerryError) -> [FormPart] {
        var parts: [FormPart] = []
        for option in options {
            var part = try option.part()
            if case .file(let given) = part.content {
                let file = try UploadFile(given, option: "--form-file \(part.name.shown)", in: surroundings)
                part.content = .file(path: file.path)
            }
            parts.append(part)
        }
        return parts
    }

    /// Several files need a folder to go to, and names of their own in it.
    private static func check(
        _ files: [UploadFile],
        _ url: String,
        _ transport: UploadProtocol
    ) throws(FerryError) {
        guard files.count > 1, transport != .tus else { return }
        guard UploadTarget.isFolder(url) else {
            throw .usage("\(files.count) files need a URL that ends in '/', to which their names are added")
        }
        var seen: [String: String] = [:]
        for file in files {
            if let other = seen[file.name], other != file.path {
                throw .usage(
                    "'\(other.shown)' and '\(file.path.shown)' have the same name, and would both become "
                        + "'\(file.name.shown)' there"
                )
            }
            seen[file.name] = file.path
        }
    }

    private static func transport(
        _ arguments: Arguments,
        _ source: Source
    ) throws(FerryError) -> UploadProtocol {
        let word = arguments.value(.transport) ?? UploadProtocol.auto.rawValue
        guard let transport = UploadProtocol(rawValue: word) else {
            throw .usage(
                "--protocol \(word) is not supported by this version; 'ferry help put' lists what is"
            )
        }
        if case .form = source {
            if transport == .tus {
                throw .usage("--protocol tus sends a file, not a form; 'ferry put FILE URL' does that")
            }
        } else if transport == .multipart {
            throw .usage("--protocol multipart sends a form, which --form and --form-file describe")
        }
        return transport
    }

    private static func method(
        _ arguments: Arguments,
        _ transport: UploadProtocol
    ) throws(FerryError) -> String? {
        guard let method = arguments.value(.method) else { return nil }
        guard HTTPToken.isValid(method) else {
            throw .usage("--method: '\(method.shown)' is no method; it is one word such as PUT or POST")
        }
        let capital = method.uppercased()
        if method != capital, ["PUT", "POST", "PATCH"].contains(capital) {
            throw .usage("--method: methods are case-sensitive; did you mean '\(capital)'?")
        }
        if ["GET", "HEAD", "CONNECT", "TRACE", "OPTIONS"].contains(capital) {
            throw .usage("--method: \(capital) sends no body; an upload needs one such as PUT or POST")
        }
        let fixed: String? =
            switch transport {
            case .put: "PUT"
            case .post: "POST"
            case .tus: "the methods of that protocol"
            case .auto, .multipart, .ietf: nil
            }
        if let fixed, fixed != method {
            throw .usage("--method \(method): --protocol \(transport.rawValue) uses \(fixed)")
        }
        return method
    }

    private static func idempotencyKey(_ arguments: Arguments) throws(FerryError) -> String? {
        guard let value = arguments.value(.idempotencyKey) else { return nil }
        if value == "auto" {
            var random = SystemRandomNumberGenerator()
            return Hex.encode((0..<16).map { _ in UInt8.random(in: 0...255, using: &random) })
        }
        // What a string of RFC 8941 §3.3.3 holds unescaped, which the field is.
        guard value.utf8.count <= 255,
            value.utf8.allSatisfy({ (32...126).contains($0) && $0 != 34 && $0 != 92 })
        else {
            throw .usage("--idempotency-key: a key has up to 255 visible ASCII characters, without \" and \\")
        }
        return value
    }

    /// Gives `Content-Type` its own place, and refuses fields that the body decides.
    private static func takeHeaders(
        _ request: inout JobRequest,
        _ order: inout UploadOrder,
        _ source: Source
    ) throws(FerryError) {
        for header in request.headers {
            switch header.name.lowercased() {
            case "content-type":
                if case .form = source {
                    throw .usage("-H: the Content-Type of a form holds its boundary and cannot be chosen")
                }
                guard MediaTypes.isValid(header.value) else {
                    throw .usage("-H: the value of Content-Type is no media type such as image/png")
                }
                order.contentType = header.value
            case "content-length", "transfer-encoding":
                throw .usage("-H: \(header.name) follows from the file and cannot be chosen")
            default: break
            }
        }
        request.headers.removeAll { $0.name.lowercased() == "content-type" }
    }

    private static func response(
        _ given: String,
        _ source: Source,
        _ surroundings: Surroundings
    ) throws(FerryError) -> String {
        // As -o: no folder, not standard output.
        guard given != "-" else {
            throw .usage("--response - is not possible: the answer goes to a file; 'ferry show' prints it")
        }
        let path = surroundings.absolute(given)
        let slash = path.lastIndex(of: "/") ?? path.startIndex
        let folder = slash == path.startIndex ? "/" : String(path[..<slash])
        var info = stat()
        guard stat(folder, &info) == 0, info.st_mode & S_IFMT == S_IFDIR,
            faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0
        else { throw .usage("--response: no file can be written in the folder '\(folder.shown)'") }
        guard stat(path, &info) == 0 else {
            guard !given.hasSuffix("/") else { throw .usage("--response: '\(given.shown)' names a folder") }
            return path
        }
        guard info.st_mode & S_IFMT == S_IFREG else {
            throw .usage("--response: '\(given.shown)' is no file")
        }
        let sources: [String] =
            switch source {
            case .files(let files): files.map(\.path)
            case .data(let file): [file.path]
            case .input: []
            case .form(let parts):
                parts.compactMap { if case .file(let path) = $0.content { path } else { nil } }
            }
        for source in sources {
            var other = stat()
            if stat(source, &other) == 0, other.st_dev == info.st_dev, other.st_ino == info.st_ino {
                throw .usage("--response: '\(given.shown)' is the file that is sent")
            }
        }
        return path
    }
}
