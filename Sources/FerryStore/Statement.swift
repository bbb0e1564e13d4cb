import CSQLite
import FerryCore

/// A value as it is bound to a parameter.
enum SQLValue {
    case null
    case integer(Int64)
    case text(String)
}

extension SQLValue: SQLBindable { var sqlValue: SQLValue { self } }

/// What can be bound to a parameter of a statement.
protocol SQLBindable {
    var sqlValue: SQLValue { get }
}

extension Int64: SQLBindable { var sqlValue: SQLValue { .integer(self) } }
extension Int: SQLBindable { var sqlValue: SQLValue { .integer(Int64(self)) } }
extension Bool: SQLBindable { var sqlValue: SQLValue { .integer(self ? 1 : 0) } }
extension String: SQLBindable { var sqlValue: SQLValue { .text(self) } }
extension Timestamp: SQLBindable { var sqlValue: SQLValue { .integer(self.milliseconds) } }
extension JobID: SQLBindable { var sqlValue: SQLValue { .integer(self.rawValue) } }
extension JobKind: SQLBindable { var sqlValue: SQLValue { .text(self.rawValue) } }
extension UploadProtocol: SQLBindable { var sqlValue: SQLValue { .text(self.rawValue) } }
extension JobState: SQLBindable { var sqlValue: SQLValue { .text(self.rawValue) } }
extension JobPhase: SQLBindable { var sqlValue: SQLValue { .text(self.rawValue) } }
extension WaitReason: SQLBindable { var sqlValue: SQLValue { .text(self.rawValue) } }
extension FailureReason: SQLBindable { var sqlValue: SQLValue { .text(self.rawValue) } }
extension Optional: SQLBindable where Wrapped: SQLBindable {
    var sqlValue: SQLValue { self?.sqlValue ?? .null }
}

/// A prepared statement of one connection; used by one thread at a time, and reset before it is used again.
final class Statement {
    private let handle: OpaquePointer
    private let database: OpaquePointer
    private let path: String

    init(_ sql: String, database: OpaquePointer, path: String) throws(StoreError) {
        var handle: OpaquePointer?
        let flags = UInt32(SQLITE_PREPARE_PERSISTENT)
        let code = sqlite3_prepare_v3(database, sql, -1, flags, &handle, nil)
        guard code == SQLITE_OK, let handle else {
            throw StoreError(
                extendedCode: code,
                path: path,
                detail: String(cString: sqlite3_errmsg(database))
            )
        }
        self.handle = handle
        self.database = database
        self.path = path
    }

    deinit {
        sqlite3_finalize(self.handle)
    }

    /// Binds values to the parameters from the first on; text is copied.
    func bind(_ values: [any SQLBindable]) throws(StoreError) {
        precondition(
            values.count == Int(sqlite3_bind_parameter_count(self.handle)),
            "a statement got \(values.count) values: \(String(cString: sqlite3_sql(self.handle)))"
        )
        for (index, value) in values.enumerated() {
            let position = Int32(index + 1)
            switch value.sqlValue {
            case .null:
                try self.check(sqlite3_bind_null(self.handle, position))
            case .integer(let number):
                try self.check(sqlite3_bind_int64(self.handle, position, number))
            case .text(var text):
                let code = text.withUTF8 { bytes in
                    bytes.withMemoryRebound(to: CChar.self) { characters in
                        guard let start = characters.baseAddress else {
                            return ferry_sqlite_bind_text(self.handle, position, "", 0)
                        }
                        return ferry_sqlite_bind_text(
                            self.handle,
                            position,
                            start,
                            UInt64(characters.count)
                        )
                    }
                }
                try self.check(code)
            }
        }
    }

    /// Goes to the next row; false after the last.
    func step() throws(StoreError) -> Bool {
        let code = sqlite3_step(self.handle)
        switch code {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        default: throw self.error(code)
        }
    }

    /// Makes it ready for its next use and lets go of what was bound.
    func reset() {
        _ = sqlite3_reset(self.handle)  // repeats the error of the last step, which was thrown there
        _ = sqlite3_clear_bindings(self.handle)  // always SQLITE_OK
    }

    /// The present row, read from its first column on.
    var row: Row { Row(handle: self.handle, path: self.path) }

    private func check(_ code: Int32) throws(StoreError) {
        guard code == SQLITE_OK else { throw self.error(code) }
    }

    private func error(_ code: Int32) -> StoreError {
        StoreError(code, of: self.database, path: self.path)
    }
}

/// One row of a result, read column by column in order; dead after the statement's next step.
struct Row {
    private let handle: OpaquePointer
    private let path: String
    private var column: Int32 = 0

    fileprivate init(handle: OpaquePointer, path: String) {
        self.handle = handle
        self.path = path
    }

    /// The next column as a number, nil for NULL.
    mutating func optionalInteger() -> Int64? {
        defer { self.column += 1 }
        guard sqlite3_column_type(self.handle, self.column) != SQLITE_NULL else { return nil }
        return sqlite3_column_int64(self.handle, self.column)
    }

    /// The next column as a number; the schema forbids NULL.
    mutating func integer() -> Int64 { self.optionalInteger() ?? 0 }

    /// The next column as a number that fits `Int`.
    mutating func int() -> Int { Int(self.integer()) }

    /// The next column as text, nil for NULL.
    mutating func optionalText() -> String? {
        defer { self.column += 1 }
        guard let bytes = sqlite3_column_text(self.handle, self.column) else { return nil }
        let count = Int(sqlite3_column_bytes(self.handle, self.column))
        return String(decoding: UnsafeBufferPointer(start: bytes, count: count), as: UTF8.self)
    }

    /// The next column as text; the schema forbids NULL.
    mutating func text() -> String { self.optionalText() ?? "" }

    /// All columns from the next one on, each as it is stored; the schema knows numbers and texts only.
    mutating func values() -> [any SQLBindable] {
        var values: [any SQLBindable] = []
        while self.column < sqlite3_column_count(self.handle) {
            let isNumber = sqlite3_column_type(self.handle, self.column) == SQLITE_INTEGER
            values.append(isNumber ? SQLValue.integer(self.integer()) : self.optionalText().sqlValue)
        }
        return values
    }

    /// The next column as a truth value, nil for NULL.
    mutating func optionalBool() -> Bool? { self.optionalInteger().map { $0 != 0 } }

    /// The next column as a time, nil for NULL.
    mutating func optionalTime() -> Timestamp? {
        self.optionalInteger().map { Timestamp(milliseconds: $0) }
    }

    /// The next column as a time; the schema forbids NULL.
    mutating func time() -> Timestamp { Timestamp(milliseconds: self.integer()) }

    /// The next column as a job's number.
    mutating func job() -> JobID { JobID(rawValue: self.integer()) }

    /// The next column as a job's number, nil for NULL.
    mutating func optionalJob() -> JobID? { self.optionalInteger().map { JobID(rawValue: $0) } }

    /// The next column as one of an enum's words, nil for NULL.
    ///
    /// - Throws: ``StoreError`` with SQLITE_CORRUPT for a word that the enum lacks.
    mutating func optionalWord<Word: RawRepresentable<String>>(_: Word.Type) throws(StoreError) -> Word? {
        guard let text = self.optionalText() else { return nil }
        guard let word = Word(rawValue: text) else {
            throw StoreError(extendedCode: SQLITE_CORRUPT, path: self.path, detail: "unknown word \(text)")
        }
        return word
    }

    /// The next column as one of an enum's words; the schema forbids NULL.
    ///
    /// - Throws: ``StoreError`` with SQLITE_CORRUPT for NULL or a word that the enum lacks.
    mutating func word<Word: RawRepresentable<String>>(_ type: Word.Type) throws(StoreError) -> Word {
        guard let word = try self.optionalWord(type) else {
            throw StoreError(extendedCode: SQLITE_CORRUPT, path: self.path, detail: "a word is missing")
        }
        return word
    }
}
