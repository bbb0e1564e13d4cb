import FerryCore
import FoundationEssentials

/// User name and password of a URL, as the field that carries them (RFC 7617).
enum BasicCredentials {
    /// Makes the field `Authorization: Basic …`.
    static func header(user: String, password: String) -> RequestHeader {
        let text = Data("\(user):\(password)".utf8).base64EncodedString()
        return RequestHeader(name: "Authorization", value: "Basic \(text)")
    }
}
