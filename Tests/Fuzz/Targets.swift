/// All parsers; each has its seeds in the folder of the same name.
let targets: [Target] =
    fieldTargets + uploadTargets + [
        Target(name: "byte-count", run: byteCount),
        Target(name: "content-disposition", run: contentDisposition),
        Target(name: "content-range", run: contentRange),
        Target(name: "duration", run: duration),
        Target(name: "file-name", run: fileName),
        Target(name: "head-parser", run: headParser),
        Target(name: "http-date", run: httpDate),
        Target(name: "media-types", run: mediaTypes),
        Target(name: "message-length", run: messageLength),
        Target(name: "resume-data", run: resumeData),
        Target(name: "multipart-body", run: multipartBody),
        Target(name: "resume-plan", run: resumePlan),
        Target(name: "retry-after", run: retryAfter),
        Target(name: "timestamp", run: timestamp),
        Target(name: "url-redaction", run: urlRedaction),
    ]

private let now = Timestamp(year: 2026, month: 11, day: 30, hour: 12)

// MARK: - Units

@Sendable private func byteCount(_ input: Input) {
    guard let count = ByteCount(text: input.text) else { return }
    check(count.bytes >= 0, "\(count.bytes) bytes")
    guard !count.text.hasSuffix("EiB") else { return }  // a unit that is not read
    guard let again = ByteCount(text: count.text) else {
        return check(false, "\(count.text) is written and not read")
    }
    check(abs(again.bytes - count.bytes) <= count.bytes / 20, "\(count.bytes) is written as \(count.text)")
}

@Sendable private func duration(_ input: Input) {
    guard let duration = DurationText.parse(input.text) else { return }
    check(duration >= .zero && duration <= .seconds(100_000_000_000), "\(duration)")
    let text = DurationText.format(duration)
    guard let again = DurationText.parse(text) else { return check(false, "\(text) is written and not read") }
    check(again <= duration && duration - again < .seconds(3_600), "\(duration) is written as \(text)")
}

@Sendable private func timestamp(_ input: Input) {
    guard let time = Timestamp(rfc3339: input.text) else { return }
    check(Timestamp(rfc3339: time.description) == time, "\(time) is written and not read")
}

// MARK: - Documents

@Sendable private func resumeData(_ input: Input) {
    let document: ResumeData
    do {
        document = try ControlJSON.decode(ResumeData.self, from: input.bytes)
    } catch {
        return check(!ResumeData.Refusal(error).reason.isEmpty, "a refusal without a reason")
    }
    check(document.blocks.count == document.blockRanges.count, "\(document.blocks.count) hashes")
    check(
        document.blockRanges.last?.upperBound ?? 0 == document.offsetBytes,
        "offset \(document.offsetBytes)"
    )
    check(document.offsetBytes <= document.remote.totalBytes ?? .max, "more than there is")
    check(document.url.lowercased().hasPrefix("http"), "the URL \(document.url)")
    for path in [document.directory, document.options.output ?? "/"] {
        check(path.hasPrefix("/") && !path.split(separator: "/").contains(".."), "the path \(path)")
    }
    for name in [document.name, document.partialName].compactMap({ $0 }) {
        check(!name.utf8.contains(47) && name != ".." && name != "." && !name.isEmpty, "the name \(name)")
    }
    for field in [document.url, document.remote.entityTag, document.remote.lastModified].compactMap({ $0 }) {
        check(!field.utf8.contains { $0 < 32 || $0 == 127 }, "a control character in \(field)")
    }
    guard let bytes = try? ControlJSON.encode(document) else { return check(false, "is not written") }
    check((try? ControlJSON.decode(ResumeData.self, from: bytes)) == document, "is written and not read")
}

// MARK: - Header fields

@Sendable private func contentRange(_ input: Input) {
    guard let range = ContentRange(input.text) else { return }
    let text: String
    switch range {
    case .satisfied(let first, let last, let total):
        check(0 <= first && first <= last && last < total ?? .max, "\(range)")
        text = "bytes \(first)-\(last)/\(total.map(String.init) ?? "*")"
    case .unsatisfied(let total):
        check(total >= 0, "\(range)")
        text = "bytes */\(total)"
    }
    check(ContentRange(text) == range, "\(text) is not read as \(range)")
}

@Sendable private func httpDate(_ input: Input) {
    guard let time = HTTPDate.parse(input.text, now: now) else { return }
    check((0...9_999).contains(time.civil.date.year), "the year of \(time)")
    check(time.milliseconds % 1_000 == 0, "a part of a second in \(time)")
    let text = HTTPDate.format(time)
    check(HTTPDate.parse(text, now: now) == time, "\(text) is written and not read")
}

/// The first line is the field, the second the answer's `Date`.
@Sendable private func retryAfter(_ input: Input) {
    let lines = input.lines.map(FileName.text)
    let date = lines.dropFirst().first.flatMap { HTTPDate.parse($0, now: now) }
    guard let pause = RetryAfter.parse(lines[0], responseDate: date, now: now) else { return }
    check(pause >= .zero && pause <= RetryAfter.limit, "\(pause)")
}

@Sendable private func contentDisposition(_ input: Input) {
    guard let name = ContentDisposition(input.text).fileName else { return }
    checkSafe(name)
}

// MARK: - Heads

@Sendable private func headParser(_ input: Input) {
    var parser = HeadParser()
    var heads: [ResponseHead] = []
    for line in input.lines {
        let event = (line + [10]).withUnsafeBytes { parser.take($0) }
        if case .head(let head) = event { heads.append(head) }
    }
    check(heads.count <= 1, "\(heads.count) final heads")
    for head in heads {
        check((0...999).contains(head.status), "status \(head.status)")
        check(head.status == 101 || !(100..<200).contains(head.status), "a final head of \(head.status)")
    }
    for field in heads.flatMap(\.fields) + parser.trailers {
        check(!field.name.utf8.contains(58), "the name \(field.name)")
        check(ASCII.trimmed(field.value) == field.value, "blanks around \(field.value)")
        check(!(field.name + field.value).utf8.contains(10), "a line feed in \(field)")
    }
}

/// A status line's number, then fields.
@Sendable private func messageLength(_ input: Input) {
    let head = head(input.lines[...])
    let codings = head.values("Transfer-Encoding").joined()
    switch MessageLength(head: head) {
    case .length(let length):
        check((0..<1_000_000_000_000_000_000).contains(length), "\(length) bytes")
        for text in head.values("Content-Length").flatMap({ $0.split(separator: ",") }) {
            check(ASCII.number(ASCII.trimmed(text.utf8)) == length, "\(length) from \(text)")
        }
    case .chunked:
        check(!codings.isEmpty, "chunked without a coding")
    case .untilClose:
        check(!codings.isEmpty || head.values("Content-Length").isEmpty, "a length is passed over")
    case .none:
        check(head.status < 200 || head.status == 204 || head.status == 304, "no body in \(head.status)")
    case .contradictory(let what):
        checkSentence(what)
    }
}

/// Status and offset, the fields of the answer that the stored bytes came with, an empty line, the fields of
/// the answer that is judged.
@Sendable private func resumePlan(_ input: Input) {
    let lines = input.lines
    let numbers = lines[0].split(separator: 32, maxSplits: 1)
    let offset = numbers.count > 1 ? ASCII.number(ASCII.trimmed(numbers[1])) ?? 0 : 0
    let empty = lines.firstIndex(of: []) ?? lines.endIndex
    var stored: RemoteObject?
    if empty > 1 {
        let head = head([Array("200".utf8)] + lines[1..<empty])
        guard case .whole(let object, _, _) = ResumePlan.judge(head, offset: 0, stored: nil, now: now) else {
            return
        }
        stored = object
    }
    let asked = ResumePlan.request(durable: offset, stored: stored)
    check(asked.offset >= 0 && asked.offset + asked.overlap == (asked.offset > 0 ? offset : 0), "\(asked)")
    if asked.overlap == 0, asked.offset > 0 { check(stored?.isResumable == true, "\(asked) without proof") }
    let answer = head((numbers.first.map { [Array($0)] } ?? []) + lines[min(empty + 1, lines.endIndex)...])
    let verdict = ResumePlan.judge(answer, offset: offset, stored: stored, now: now)
    switch verdict {
    case .append(let object, let range, let skip, let proved):
        check(answer.status == 206 && offset > 0, "appends a \(answer.status) at \(offset)")
        check(!range.isEmpty && range.start + skip == offset, "\(range) skips \(skip) at \(offset)")
        check((0..<range.count).contains(skip), "\(range) skips \(skip)")
        check(range.end <= object.totalBytes ?? .max, "\(range) of \(object)")
        check(range.end <= stored?.totalBytes ?? .max, "\(range) of what was \(String(describing: stored))")
        check(object.contentEncoding == nil, "appends coded bytes")
        check(stored.map { $0.compare(object) != .different } ?? false, "appends to another object")
        if proved { check(stored?.validator?.isStrong == true, "proved by \(String(describing: stored))") }
    case .whole(let object, let length, let restart):
        check(answer.status == 200 || answer.status == 203, "takes a \(answer.status) as the whole")
        check(length ?? 0 >= 0, "\(String(describing: length)) bytes")
        check((restart == nil) == (offset == 0), "restart \(String(describing: restart)) at \(offset)")
        check(object.totalBytes == (object.contentEncoding == nil ? length : nil), "\(object)")
    case .complete:
        check(answer.status == 416 && offset > 0, "complete by a \(answer.status) at \(offset)")
        check(
            offset == stored?.totalBytes ?? offset,
            "complete at \(offset) of \(String(describing: stored))"
        )
    case .askAgain:
        // Asked without Range the answer must not lead here again.
        check(offset > 0, "asks again for the whole")
    case .redirect, .refused:
        check((300..<600).contains(answer.status), "\(verdict) by a \(answer.status)")
    case .bad(let what):
        checkSentence(what)
    }
}

/// A head from a line with the status and lines of fields.
func head(_ lines: ArraySlice<[UInt8]>) -> ResponseHead {
    var head = ResponseHead(status: lines.first.flatMap(ASCII.number).map(Int.init) ?? 200)
    for line in lines.dropFirst() {
        guard let colon = line.firstIndex(of: 58) else { continue }
        let value = ASCII.trimmed(line[(colon + 1)...])
        head.fields.append(.init(name: FileName.text(Array(line[..<colon])), value: FileName.text(value)))
    }
    return head
}

/// What is shown to users: short, and nothing that steers a terminal.
func checkSentence(_ text: String) {
    check(!text.isEmpty && text.utf8.count <= 200, "a message of \(text.utf8.count) bytes")
    check(FileName.display(text) == text, "the message \(text)")
}

// MARK: - Names and addresses

@Sendable private func fileName(_ input: Input) {
    let text = input.text
    let names = [FileName.safe(text), FileName.fromURLPath(text)]
    for name in names.compactMap({ $0 }) {
        checkSafe(name)
        checkSafe(FileName.numbered(name, Int(input.number)))
    }
    let job = JobID(rawValue: input.number)
    let partial = FileName.partial(name: names[0] ?? text, job: job, generation: Int(input.number % 4))
    check(partial.utf8.count <= FileName.limit, "a partial's name of \(partial.utf8.count) bytes")
    check(partial.utf8.first == 46 && partial.utf8.count > 1, "the partial \(partial)")
    if names[0] != nil { checkCharacters(partial) }
    checkCharacters(FileName.display(text), allowed: ["/", "\\"])
}

/// The rules for a name that a server may choose.
private func checkSafe(_ name: String) {
    check((1...FileName.limit).contains(name.utf8.count), "a name of \(name.utf8.count) bytes")
    check(!".-~ ".utf8.contains(name.utf8.first ?? 0), "the beginning of \(name)")
    check(!". ".utf8.contains(name.utf8.last ?? 0), "the end of \(name)")
    checkCharacters(name)
    let again = FileName.safe(name)
    check(again.map { Array($0.utf8) } == Array(name.utf8), "\(name) is made \(again ?? "nothing")")
}

/// No separators, control, bidirectional or zero-width characters.
private func checkCharacters(_ name: String, allowed: [Unicode.Scalar] = []) {
    for scalar in name.unicodeScalars where !allowed.contains(scalar) {
        switch scalar.value {
        case 0..<32, 127..<160, 0x61C, 0x200B...0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF, 47, 92:
            check(false, "U+\(String(scalar.value, radix: 16)) in \(name)")
        default: break
        }
    }
}

/// Lines: the password (without what ends an authority), the path, a key, its value.
@Sendable private func urlRedaction(_ input: Input) {
    let redacted = Array(URLRedaction.redact(input.text).utf8)
    check(!redacted.contains(35), "a fragment is left")
    if let mark = redacted.firstIndex(of: 63) {
        for item in redacted[(mark + 1)...].split(separator: 38) {
            let value = item.firstIndex(of: 61).map { item[($0 + 1)...] } ?? item
            check(value.elementsEqual("***".utf8), "a query's value is left")
        }
    }
    _ = URLRedaction.linkMayExpire(input.text)

    let secrets = ["S3cret", "T0ken"]
    guard !secrets.contains(where: { holds(input.bytes, $0) }) else { return }
    let lines = input.lines
    func part(_ index: Int, without: String) -> String {
        FileName.text(index < lines.count ? lines[index].filter { !without.utf8.contains($0) } : [])
    }
    let password = part(0, without: "/\\?#")
    let path = part(1, without: "?#")
    let value = part(3, without: "&#")
    let rest = "e.org:8443/\(path)?\(part(2, without: "=&#"))=\(value)T0ken\(value)&T0ken#T0ken"
    for beginning in ["https://u:", "https://", "//u:", "u:"] {
        let url = URLRedaction.redact(beginning + password + "S3cret" + password + "@" + rest)
        for secret in secrets { check(!holds(Array(url.utf8), secret), "\(url) shows \(secret)") }
    }
}

/// Whether the bytes of a text stand somewhere in others, whatever characters they are part of.
private func holds(_ bytes: [UInt8], _ text: String) -> Bool {
    let wanted = Array(text.utf8)
    return bytes.indices.contains { bytes[$0...].starts(with: wanted) }
}

// MARK: - Forms

/// A table; the names that it is asked for are its own words.
@Sendable private func mediaTypes(_ input: Input) {
    let table = MediaTypes(input.bytes)
    for line in input.lines.prefix(64) {
        for word in line.split(separator: 32).prefix(16) {
            let type = table.type(of: "a." + FileName.text(Array(word)))
            check(MediaTypes.isValid(type), "the type \(type)")
            check(!type.utf8.contains { $0 <= 32 || $0 == 59 }, "blanks in the type \(type)")
        }
    }
}

/// Lines: a field's name, a file's name, a media type; what follows is a text.
@Sendable private func multipartBody(_ input: Input) {
    // The text view would make one character of CR and LF, so the lines are split at 1 instead.
    let lines = input.bytes.split(separator: 1, maxSplits: 3, omittingEmptySubsequences: false)
        .map { FileName.text(Array($0)) }
    func line(_ index: Int) -> String { index < lines.count ? lines[index] : "" }
    let size = input.number
    let boundary = MultipartBody.boundary(random: UInt8(0)..<20)
    let parts = [
        FormPart(
            name: line(0),
            content: .file(path: "/f"),
            contentType: MediaTypes.isValid(line(2)) ? line(2) : nil,
            fileName: line(1)
        ),
        FormPart(name: line(1), content: .value(line(3))),
    ]
    guard
        let body = MultipartBody(parts, fileSizes: [size], boundary: boundary, mediaTypes: MediaTypes([])),
        case .bytes(let head)? = body.pieces.first
    else { return check(size > .max - 1 << 20, "no body for \(size) bytes") }
    var length: Int64 = 0
    for piece in body.pieces {
        switch piece {
        case .bytes(let bytes): length += Int64(bytes.count)
        case .file(_, let size): length += size
        }
    }
    check(length == body.length, "\(body.length) bytes are promised, and \(length) made")
    var found: [[UInt8]] = [[]]
    for (index, byte) in head.enumerated() {
        if byte == 10 {
            check(index > 0 && head[index - 1] == 13, "a lone line feed in a head")
            found.append([])
        } else if byte == 13 {
            check(index + 1 < head.count && head[index + 1] == 10, "a lone carriage return in a head")
        } else {
            found[found.count - 1].append(byte)
        }
    }
    check(found.count == 5, "a head of \(found.count - 1) lines")
    check(found[0].elementsEqual("--\(boundary)".utf8), "the delimiter")
    check(found[1].count { $0 == 34 } == 4, "the quotes of a head")
    check(found[2].starts(with: "Content-Type: ".utf8), "the second field of a head")
    check(found[3].isEmpty && found[4].isEmpty, "the end of a head")
}
