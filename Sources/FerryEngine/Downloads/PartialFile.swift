import FerryCore
import FerryFiles
import FerryStore
import FoundationEssentials

/// An open partial with what is known of it.
struct PartialFile: Sendable {
    /// The row as it was read or made: names, generation, inode.
    var record: FileRecord
    /// What is known of the remote object that its bytes are of.
    var remote: RemoteObject
    let folder: Folder
    let file: OpenFile
    /// Tells of other programs that write into it; nil if nothing can tell.
    let edits: EditWatch.Mark?
    /// Bytes from the beginning that survive a power cut, by their hash.
    var prefix: PrefixHash

    /// How many bytes from the beginning survive a power cut.
    var durable: Int64 { self.prefix.end }

    /// Whether another program may have changed it since it was opened.
    var isEdited: Bool { self.edits?.isEdited == true }

    /// The row that says all that is known by now; `settled` as in ``FileRecord/settledNs``.
    func row(settled: Int64? = nil) -> FileRecord {
        var row = self.record
        row.settledNs = settled
        row.set(self.remote, prefix: self.prefix)
        return row
    }

    /// Takes over digests that an answer has named.
    mutating func add(_ digests: [ExpectedDigest]) {
        let known = self.remote.digests ?? []
        let all = known + digests.filter { !known.contains($0) }
        self.remote.digests = all.isEmpty ? nil : all
    }
}

/// What the column `remote` keeps of a partial: the object's fields, and among them the hash of its bytes.
private struct KnownPartial: Codable {
    let remote: RemoteObject
    let prefix: PrefixHash?

    private enum Key: String, CodingKey {
        case prefix
    }

    init(remote: RemoteObject, prefix: PrefixHash?) {
        self.remote = remote
        self.prefix = prefix
    }

    init(from decoder: any Decoder) throws {
        self.remote = try RemoteObject(from: decoder)
        self.prefix = try decoder.container(keyedBy: Key.self).decodeIfPresent(
            PrefixHash.self,
            forKey: .prefix
        )
    }

    func encode(to encoder: any Encoder) throws {
        try self.remote.encode(to: encoder)
        var container = encoder.container(keyedBy: Key.self)
        try container.encodeIfPresent(self.prefix, forKey: .prefix)
    }
}

extension FileRecord {
    /// The hash of the durable bytes; nil if none is known.
    var prefix: PrefixHash? {
        try? JSONDecoder().decode(KnownPartial.self, from: Data(self.remote.utf8)).prefix
    }

    /// Takes what is known of the object, and the hash of the durable bytes.
    mutating func set(_ remote: RemoteObject, prefix: PrefixHash?) {
        let prefix = prefix == .empty ? nil : prefix
        self.remote = jsonText(of: KnownPartial(remote: remote, prefix: prefix))
    }
}

extension RemoteObject {
    /// The JSON text that the database keeps.
    var json: String { jsonText(of: self) }

    /// Reads the JSON text; what cannot be read is unknown, which costs bytes and never truth.
    init(json: String) {
        self = (try? JSONDecoder().decode(RemoteObject.self, from: Data(json.utf8))) ?? RemoteObject()
    }
}

private func jsonText(of value: some Encodable) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(value) else { return "{}" }  // plain strings and numbers encode
    return String(decoding: data, as: UTF8.self)
}
