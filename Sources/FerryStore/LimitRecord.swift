/// A limit that was set while the service ran; kept until it is taken back.
public struct LimitRecord: Sendable, Equatable {
    /// What a limit is about.
    public enum Scope: String, Sendable, CaseIterable {
        /// The whole queue; its name is empty.
        case all
        /// A host, `name` or `name:port`.
        case host
        /// A group.
        case group
        /// A job, by its number.
        case job
    }

    /// What it is about.
    public var scope: Scope
    /// Whose it is, in that scope.
    public var name: String
    /// What is limited, such as `running`; the caller's words.
    public var key: String
    /// How much; nil means expressly without a limit, whatever the configuration says.
    public var value: Int64?

    /// Makes a record.
    public init(scope: Scope, name: String, key: String, value: Int64?) {
        self.scope = scope
        self.name = name
        self.key = key
        self.value = value
    }
}

extension LimitRecord.Scope: SQLBindable {
    var sqlValue: SQLValue { .text(self.rawValue) }
}

extension LimitRecord {
    /// The columns in the order in which ``init(row:)`` reads them.
    static let columns = "scope, name, key, value"

    init(row: inout Row) throws {
        self.init(
            scope: try row.word(Scope.self),
            name: row.text(),
            key: row.text(),
            value: row.optionalInteger()
        )
    }
}

extension Reader {
    /// All limits that were set, by scope and name.
    public final func limits() throws -> [LimitRecord] {
        try self.connection.rows(
            "SELECT \(LimitRecord.columns) FROM \"limit\" ORDER BY scope, name, key",
            [],
            LimitRecord.init(row:)
        )
    }
}

extension Transaction {
    /// Stores a limit; one of the same scope, name and key is replaced.
    public func save(_ limit: LimitRecord) throws {
        try self.connection.run(
            "INSERT OR REPLACE INTO \"limit\" (\(LimitRecord.columns)) VALUES (?, ?, ?, ?)",
            limit.scope,
            limit.name,
            limit.key,
            limit.value
        )
    }

    /// Takes a limit back; one that was not set is no error.
    public func removeLimit(scope: LimitRecord.Scope, name: String, key: String) throws {
        try self.connection.run(
            "DELETE FROM \"limit\" WHERE scope = ? AND name = ? AND key = ?",
            scope,
            name,
            key
        )
    }
}
