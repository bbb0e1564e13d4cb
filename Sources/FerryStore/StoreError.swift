import CSQLite
public import FerryCore
import Glibc

/// What SQLite said when a read or a write of the job database failed.
///
/// ``JobStore/write(_:)`` and ``JobStore/read(_:)`` throw it for failures of the database itself; nothing of
/// the write that got it is stored. ``ferryError`` is its form for a command.
public struct StoreError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The extended result code (sqlite.org/rescode.html).
    public let extendedCode: Int32
    /// The database's file.
    public let path: String
    /// SQLite's own words.
    public let detail: String
    /// The operating system's error number where `extendedCode` is an I/O error; else 0.
    public let systemError: Int32

    /// Makes an error of a result code; `detail` is SQLite's text for the code where none is given.
    public init(extendedCode: Int32, path: String, detail: String? = nil, systemError: Int32 = 0) {
        self.extendedCode = extendedCode
        self.path = path
        self.detail = detail ?? String(cString: sqlite3_errstr(extendedCode))
        self.systemError = systemError
    }

    /// What the last call on a connection gave.
    init(_ code: Int32, of database: OpaquePointer, path: String) {
        self.init(
            extendedCode: code,
            path: path,
            detail: String(cString: sqlite3_errmsg(database)),
            systemError: code & 0xff == SQLITE_IOERR ? sqlite3_system_errno(database) : 0
        )
    }

    /// The primary result code, the low eight bits.
    public var code: Int32 { self.extendedCode & 0xff }

    /// Whether space is missing: nothing is damaged, and the same write can succeed later.
    ///
    /// SQLite turns ENOSPC of a write into SQLITE_FULL, but leaves a used-up quota and a log index that cannot
    /// grow as I/O errors.
    public var isDiskFull: Bool {
        self.code == SQLITE_FULL || self.systemError == ENOSPC || self.systemError == EDQUOT
    }

    /// Whether the file's content is wrong, so that trying again cannot help.
    public var isDamage: Bool { self.code == SQLITE_CORRUPT || self.code == SQLITE_NOTADB }

    /// Whether a CHECK, a key or a type of the schema forbids what was written: a mistake of the caller.
    public var isConstraint: Bool { self.code == SQLITE_CONSTRAINT }

    /// The form for a command: what happened to which file, and what helps.
    public var ferryError: FerryError {
        switch self.code {
        case _ where self.isDiskFull:
            self.database("there is no space to write the job database \(self.path)", "Free some space")
        case SQLITE_NOTADB:
            self.database("\(self.path) is no job database of Ferry: \(self.detail)", StoreError.moveAway)
        case SQLITE_CORRUPT:
            self.database("the job database \(self.path) is damaged: \(self.detail)", StoreError.moveAway)
        case SQLITE_READONLY, SQLITE_PERM, SQLITE_CANTOPEN, SQLITE_AUTH:
            self.database(
                "the job database \(self.path) cannot be written: \(self.detail)",
                "Make the file and its folder writable for this user, or name another folder with --state-dir"
            )
        case SQLITE_BUSY, SQLITE_LOCKED:
            self.database(
                "the job database \(self.path) is in use by another program",
                "Only the service may open it"
            )
        default:
            self.database(
                "the job database \(self.path) failed: \(self.detail)",
                "ferryd --check looks for damage"
            )
        }
    }

    /// The sentence.
    public var description: String { self.ferryError.message }

    static let moveAway = """
        Ferry does not touch it: ferryd --check says more; to begin a new queue, move the file away together \
        with those of the same name that end in -wal and -shm
        """

    private func database(_ sentence: String, _ hint: String) -> FerryError {
        FerryError(.database, "\(sentence)\n\(hint)", exitStatus: .database)
    }
}
