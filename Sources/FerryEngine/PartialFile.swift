import FerryCore
import FerryFiles
import FerryStore
import FoundationEssentials

/// An open partial with what is known of it.
struct PartialFile: Sendable {
    /// The row: names, generation, inode.
    var record: FileRecord
    /// What is known of the remote object that its bytes are of.
    var remote: RemoteObject
    let folder: Folder
    let file: OpenFile
    /// Bytes from the beginning that survive a power cut.
    var durable: Int64
}

extension RemoteObject {
    /// The JSON text that the database keeps.
    var json: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(self) else { return "{}" }  // plain strings and numbers encode
        return String(decoding: data, as: UTF8.self)
    }

    /// Reads the JSON text; what cannot be read is unknown, which costs bytes and never truth.
    init(json: String) {
        self = (try? JSONDecoder().decode(RemoteObject.self, from: Data(json.utf8))) ?? RemoteObject()
    }
}
