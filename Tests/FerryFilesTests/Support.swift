import FerryTestSupport
import Glibc
import Synchronization

@testable import FerryFiles

/// Where a call was to write, and how much.
struct Write: Equatable, Sendable {
    let offset: Int64
    let count: Int
}

/// Records the writes that reach the kernel, and decides what they answer.
final class WriteLog: Sendable {
    private let log = Mutex<[Write]>([])

    var writes: [Write] { self.log.withLock { $0 } }

    /// Calls that record; `answer` gives the count to write, or a negative errno value, by the call's number.
    func calls(
        _ answer: @escaping @Sendable (_ number: Int, _ count: Int) -> Int = { $1 }
    ) -> FileCalls {
        var calls = FileCalls.real
        calls.pwrite = { descriptor, bytes, count, offset in
            let number = self.log.withLock { log in
                log.append(Write(offset: offset, count: count))
                return log.count
            }
            let result = answer(number, count)
            guard result >= 0 else {
                errno = Int32(-result)
                return -1
            }
            return FileCalls.real.pwrite(descriptor, bytes, result, offset)
        }
        return calls
    }
}

/// A closure for a call that takes an integer and fails.
func failing<each Argument>(_ code: Int32) -> @Sendable (repeat each Argument) -> Int32 {
    { (_: repeat each Argument) in
        errno = code
        return -1
    }
}

/// The permission bits of a file or folder.
func mode(of path: String) -> UInt32 {
    var info = stat()
    return lstat(path, &info) == 0 ? info.st_mode & 0o7777 : .max
}

/// SplitMix64, so that a printed seed gives the same numbers again.
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        self.state &+= 0x9e37_79b9_7f4a_7c15
        var z = self.state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}
