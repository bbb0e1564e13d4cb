import Glibc

/// What libFuzzer calls for each input; `FUZZ_TARGET` names the parser that gets it.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    chosen.run(Input(bytes: Array(UnsafeBufferPointer(start: start, count: count))))
    return 0
}

/// A parser and the rules that its results keep, whatever it is given.
struct Target: Sendable {
    let name: String
    let run: @Sendable (Input) -> Void
}

/// The target of this process, looked up once.
private let chosen: Target = {
    let name = getenv("FUZZ_TARGET").map { String(cString: $0) } ?? ""
    guard let target = targets.first(where: { $0.name == name }) else {
        write("FUZZ_TARGET is none of: " + targets.map(\.name).joined(separator: " "))
        exit(2)
    }
    return target
}()

/// The bytes that the fuzzer made, in the forms that the targets take.
struct Input {
    let bytes: [UInt8]

    /// As header values and URLs are decoded: UTF-8, else Latin-1.
    var text: String { FileName.text(self.bytes) }

    /// Split at line feeds, which are left out.
    var lines: [[UInt8]] {
        self.bytes.split(separator: 10, omittingEmptySubsequences: false).map(Array.init)
    }

    /// A number from 0 that follows from the bytes and takes small and huge values alike.
    var number: Int64 {
        let mixed = self.bytes.reduce(14_695_981_039_346_656_037 as UInt64) {
            ($0 ^ UInt64($1)) &* 1_099_511_628_211
        }
        return Int64(mixed >> (1 + mixed % 63))
    }
}

/// Ends the process with a finding unless a rule is kept.
func check(_ isKept: Bool, _ rule: @autoclosure () -> String) {
    guard !isKept else { return }
    write("finding: \(chosen.name): \(FileName.display(rule()))")
    abort()
}

private func write(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = Glibc.write(2, bytes, bytes.count)  // the process ends, whether or not it could be said
}
