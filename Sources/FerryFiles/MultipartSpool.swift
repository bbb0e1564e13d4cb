import CFerryLinux
public import FerryCore
import Glibc

/// Builds multipart/form-data bodies in files, so that one body can be sent as often as need be, byte for byte.
///
/// The file appears under its name only when it is whole and synced; what is found under that name after a crash
/// is therefore a whole body, and what is found under the name of an unfinished one is made again.
public enum MultipartSpool {
    /// A body that is ready to be sent.
    public struct Built: Sendable, Hashable {
        /// The file that holds it.
        public let path: String
        /// Its exact length in bytes.
        public let length: Int64
        /// The value of `Content-Type`, with the boundary.
        public let contentType: String
        /// Each source file as it was while it was read, in the order of the parts.
        public let sources: [OpenFile.Identity]
    }

    /// Why no body was built; nothing of it is left then.
    public struct Failure: Error, Sendable, Hashable {
        /// What kind of failure.
        public enum Code: Sendable {
            /// A source is missing, not readable or no regular file.
            case sourceUnusable
            /// A source changed while it was read.
            case sourceChanged
            /// The disk of the spool folder is full, or a quota is used up.
            case diskFull
            /// The spool folder cannot be used.
            case storage
            /// `isStopped` said so.
            case stopped
        }
        /// What kind.
        public let code: Code
        /// One sentence.
        public let message: String
    }

    /// How much is copied at a time, in bytes; also how often the caller is asked and told.
    static let step: Int64 = 8 << 20

    /// Builds a body and gives it its name, replacing an older one; blocks for as long as the disk needs.
    ///
    /// - Parameters:
    ///   - parts: The parts, in order.
    ///   - name: The file's name in the folder; see ``SpoolName``.
    ///   - folder: The spool folder, made (mode 0700) if it is missing.
    ///   - mediaTypes: Names the types of files that none was given for.
    ///   - calls: The system calls; tests let them fail.
    ///   - progress: Told after each step: bytes written, and the body's length.
    ///   - isStopped: Asked before each step of 8 MiB.
    /// - Returns: The body, synced, and its name too.
    /// - Throws: ``Failure``; the folder is then as it was before.
    public static func build(
        _ parts: [FormPart],
        as name: String,
        in folder: String,
        mediaTypes: MediaTypes = .system,
        calls: FileCalls = .real,
        progress: (_ done: Int64, _ total: Int64) -> Void = { _, _ in },
        isStopped: () -> Bool = { false }
    ) throws(Failure) -> Built {
        let sources = try Self.sources(of: parts, calls)
        var random = SystemRandomNumberGenerator()
        let bytes = (0..<20).map { _ in UInt8.random(in: 0...255, using: &random) }
        guard
            let body = MultipartBody(
                parts,
                fileSizes: sources.map(\.size),
                boundary: MultipartBody.boundary(random: bytes),
                mediaTypes: mediaTypes
            )
        else {
            throw Failure(code: .diskFull, message: "the form's files are too large for any disk together")
        }
        // The gate of `calls` is for the sources; the folder is the queue's own.
        var own = calls
        own.allowedFolders = nil
        let place = try Self.open(folder, own)
        let working = SpoolName.unfinished(name)
        do throws(Failure) {
            try Self.write(
                body,
                sources,
                calls,
                to: working,
                in: place,
                progress: progress,
                isStopped: isStopped
            )
            try Self.storing(body.length, folder) { () throws(SystemError) in
                try place.rename(working, to: name, replacing: true)
                try place.sync()
            }
        } catch {
            try? place.remove(working)  // what stays is replaced by the next build, or found as a left-over
            throw error
        }
        return Built(
            path: place.path(of: name),
            length: body.length,
            contentType: body.contentType,
            sources: sources
        )
    }

    private static func sources(of parts: [FormPart], _ calls: FileCalls) throws(Failure) -> [OpenFile
        .Identity]
    {
        var result: [OpenFile.Identity] = []
        for part in parts {
            guard case .file(let path) = part.content else { continue }
            result.append(
                try Self.reading { () throws(SystemError) in
                    try OpenFile.source(path, calls: calls).identity()
                }
            )
        }
        return result
    }

    private static func open(_ folder: String, _ calls: FileCalls) throws(Failure) -> Folder {
        try Self.storing(0, folder) { () throws(SystemError) in
            if mkdir(folder, 0o700) == 0 {
                let parent = folder.prefix(upTo: folder.lastIndex(of: "/") ?? folder.startIndex)
                try Folder(parent.isEmpty ? "/" : String(parent), calls: calls).sync()
            } else if errno != EEXIST {
                throw SystemError(errno: errno, action: "create the folder", path: folder)
            }
            return try Folder(folder, calls: calls)
        }
    }

    private static func write(
        _ body: MultipartBody,
        _ sources: [OpenFile.Identity],
        _ calls: FileCalls,
        to name: String,
        in folder: Folder,
        progress: (Int64, Int64) -> Void,
        isStopped: () -> Bool
    ) throws(Failure) {
        let file = try Self.storing(body.length, folder.path) { () throws(SystemError) in
            try folder.remove(name)  // of a build that was killed
            let file = try folder.create(name, mode: 0o600)
            _ = flock(file.descriptor, LOCK_EX | LOCK_NB)  // says that it is being made; see SpoolName
            try file.reserve(body.length)
            return file
        }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4_096)
        defer { buffer.deallocate() }
        var expected = sources.makeIterator()
        var offset: Int64 = 0
        for piece in body.pieces {
            switch piece {
            case .bytes(let bytes):
                try Self.storing(body.length, folder.path) { () throws(SystemError) in
                    try Self.write(bytes, to: file, at: offset)
                }
                offset += Int64(bytes.count)
            case .file(let path, let size):
                let source = try Self.reading { () throws(SystemError) in
                    try OpenFile.source(path, calls: calls)
                }
                let identity = expected.next()
                try Self.check(source, identity)
                var position: Int64 = 0
                while position < size {
                    guard !isStopped() else {
                        throw Failure(code: .stopped, message: "the form's body was not built: stopped")
                    }
                    let end = min(size, position + Self.step)
                    do throws(SystemError) {
                        try file.copy(from: source, position..<end, to: offset, buffer: buffer)
                    } catch {
                        if error.errno == ENODATA { try Self.check(source, identity) }
                        throw error.path == file.path
                            ? Self.failure(error, body.length, folder.path)
                            : Failure(code: .sourceUnusable, message: error.description)
                    }
                    // Write-out now keeps the sync at the end short; a failure shows there.
                    _ = ferry_start_writeout(file.descriptor, offset, end - position)
                    offset += end - position
                    position = end
                    progress(offset, body.length)
                }
                try Self.check(source, identity)
            }
        }
        try Self.storing(body.length, folder.path) { () throws(SystemError) in try file.sync() }
        progress(body.length, body.length)
    }

    private static func write(_ bytes: [UInt8], to file: OpenFile, at offset: Int64) throws(SystemError) {
        var failure: SystemError?
        bytes.withUnsafeBytes { pointer in
            do throws(SystemError) { try file.write(pointer, at: offset) } catch { failure = error }
        }
        if let failure { throw failure }
    }

    /// Compares a source with what it was when the body was laid out.
    private static func check(_ source: OpenFile, _ expected: OpenFile.Identity?) throws(Failure) {
        let now = try Self.reading { () throws(SystemError) in try source.identity() }
        guard now == expected else {
            throw Failure(
                code: .sourceChanged,
                message: "the file \(source.path) changed while the form's body was built from it"
            )
        }
    }

    private static func reading<Result>(
        _ body: () throws(SystemError) -> Result
    ) throws(Failure) -> Result {
        do throws(SystemError) {
            return try body()
        } catch {
            throw Failure(code: .sourceUnusable, message: error.description)
        }
    }

    private static func storing<Result>(
        _ length: Int64,
        _ folder: String,
        _ body: () throws(SystemError) -> Result
    ) throws(Failure) -> Result {
        do throws(SystemError) {
            return try body()
        } catch {
            throw Self.failure(error, length, folder)
        }
    }

    private static func failure(_ error: SystemError, _ length: Int64, _ folder: String) -> Failure {
        guard error.errno == ENOSPC || error.errno == EDQUOT else {
            return Failure(code: .storage, message: error.description)
        }
        let need = ByteCount(bytes: length).text
        return Failure(
            code: .diskFull,
            message: "the form's body needs \(need) in \(folder): \(SystemError.text(error.errno))"
        )
    }
}
