/// Parsers of digests and structured fields.
let fieldTargets: [Target] = [
    Target(name: "checksum-list", run: checksumList),
    Target(name: "digest-fields", run: digestFields),
    Target(name: "structured-field", run: structuredField),
]

/// What a server, or a user, gives as `SHA256SUMS`.
@Sendable private func checksumList(_ input: Input) {
    let lines = input.lines.count
    do throws(ChecksumList.Failure) {
        for entry in try ChecksumList.parse(input.bytes) {
            check(!entry.name.isEmpty && !entry.name.utf8.contains(0), "the name \(entry.name)")
            check(entry.checksum.bytes.count == entry.checksum.algorithm.byteCount, "\(entry)")
        }
    } catch {
        check((1...lines).contains(error.line), "line \(error.line) of \(lines)")
        check(!error.reason.isEmpty && error.reason.utf8.count <= 200, "the reason \(error.reason)")
    }
}

/// A head, an empty line, trailers.
@Sendable private func digestFields(_ input: Input) {
    let lines = input.lines
    let empty = lines.firstIndex(of: []) ?? lines.endIndex
    let answer = head(lines[..<empty])
    let trailers = Array(head([[]] + lines[empty...].dropFirst()).fields)
    let found = DigestFields.expected(head: answer, trailers: trailers)
    check(found.isEmpty || [200, 206].contains(answer.status), "digests in a \(answer.status)")
    check(Set(found).count == found.count, "one expectation twice in \(found)")
    let isCoded = answer.values("Content-Encoding").contains {
        !["", "identity"].contains(ASCII.lowercased($0))
    }
    for digest in found {
        check(digest.checksum.bytes.count == digest.checksum.algorithm.byteCount, "\(digest)")
        check(!isCoded || !digest.isDecisive, "\(digest) decides in spite of a coding")
    }
}

/// A field as an item and as a dictionary, read strictly.
@Sendable private func structuredField(_ input: Input) {
    if let item = StructuredItem(text: input.text) {
        check(item.value, of: input)
        item.parameters.values.forEach { check($0, of: input) }
    }
    let lines = input.lines.map(FileName.text)
    guard let dictionary = StructuredDictionary(lines: lines) else { return }
    for (key, member) in dictionary.members {
        check(!key.isEmpty && input.text.utf8.count >= key.utf8.count, "the key \(key)")
        switch member {
        case .item(let item): check(item.value, of: input)
        case .innerList(let items, _): items.forEach { check($0.value, of: input) }
        }
    }
}

/// A value stays within what RFC 8941 §3.3 allows, and within its text.
private func check(_ value: StructuredValue, of input: Input) {
    switch value {
    case .integer(let number): check(abs(number) <= 999_999_999_999_999, "\(number)")
    case .decimal(let thousandths): check(abs(thousandths) <= 999_999_999_999_999, "\(thousandths)/1000")
    case .string(let text):
        check(text.utf8.allSatisfy { (32...126).contains($0) }, "the string \(text)")
    case .token(let text): check(!text.isEmpty && !text.utf8.contains(32), "the token \(text)")
    case .bytes(let bytes):
        check(bytes.count <= input.bytes.count, "\(bytes.count) bytes from \(input.bytes.count)")
    case .boolean: break
    }
}
