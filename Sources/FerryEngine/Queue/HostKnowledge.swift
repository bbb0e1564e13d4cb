import FerryCore
import FoundationEssentials

/// What the answers of a host have taught, as the database keeps it.
struct HostKnowledge: Codable {
    /// It sends everything when `If-Range` is there, although nothing has changed.
    var hasBrokenIfRange = false
    /// It does not know `Expect: 100-continue`.
    var ignoresExpect: Bool?
    /// It knows no protocol for resumable uploads, as far as it was asked.
    var hasPlainUploads: Bool?
    /// Why it is paused.
    var trouble: HostBudget.Trouble?

    /// Reads the JSON text; what cannot be read is not known.
    init(json: String?) {
        guard let json, let known = try? JSONDecoder().decode(HostKnowledge.self, from: Data(json.utf8))
        else {
            return
        }
        self = known
    }

    /// The JSON text.
    var json: String {
        guard let data = try? JSONEncoder().encode(self) else { return "{}" }  // flags encode
        return String(decoding: data, as: UTF8.self)
    }
}
