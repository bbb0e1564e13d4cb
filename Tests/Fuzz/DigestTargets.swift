// What says what a file's digest must be: fields of servers, and lists of checksums.

/// A status, the fields of a head, an empty line, trailers.
@Sendable func digestFields(_ input: Input) {
    let lines = input.lines
    let empty = lines.firstIndex(of: []) ?? lines.endIndex
    let answer = head(lines[..<empty])
    let trailers = head(lines[empty...]).fields
    let expected = DigestFields.expected(head: answer, trailers: trailers)
    check(expected.isEmpty || answer.status == 200 || answer.status == 206, "\(answer.status) names a digest")
    check(Set(expected).count == expected.count, "the same twice")
    let codings = answer.values("Content-Encoding").flatMap { $0.split(separator: ",") }
    let isCoded = codings.contains {
        ASCII.lowercased(ASCII.trimmed($0)) != "identity" && !ASCII.trimmed($0).isEmpty
    }
    var computed: [DigestAlgorithm: Checksum] = [:]
    for one in expected {
        let checksum = one.checksum
        check(checksum.bytes.count == checksum.algorithm.byteCount, "\(checksum)")
        check(Checksum(text: checksum.text) == checksum, "\(checksum.text) is written and not read")
        check(!isCoded || !one.isDecisive, "\(one) decides about coded bytes")
        check(one.source != .user, "\(one) is not the user's")
        computed[checksum.algorithm] = computed[checksum.algorithm] ?? checksum
    }
    switch DigestVerdict(computed: computed, expected: expected) {
    case .proved(let one):
        check(computed[one.checksum.algorithm] == one.checksum, "proved by \(one)")
    case .mismatch(let one):
        check(one.isDecisive && computed[one.checksum.algorithm] != one.checksum, "mismatch of \(one)")
    case .unproved:
        check(expected.isEmpty, "what is the first of its kind is met")
    }
}

@Sendable func checksumList(_ input: Input) {
    do {
        for entry in try ChecksumList.parse(input.bytes) {
            check(!entry.name.isEmpty && !entry.name.utf8.contains(0), "the name \(entry.name)")
            check(Checksum(text: entry.checksum.text) == entry.checksum, "\(entry.checksum)")
        }
    } catch {
        check((1...input.lines.count).contains(error.line), "line \(error.line) of \(input.lines.count)")
        check(!error.reason.isEmpty, "a failure without a reason")
    }
}
