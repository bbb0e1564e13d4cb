import FerryCore
import FoundationEssentials

/// A part of a request that is kept apart from it, in the table `secret`.
struct RequestSecret: Equatable {
    /// The kinds that a request consists of; the others belong to other parts of a job.
    static let kinds = ["url", "headers", "proxy", "form"]
    /// `url`, `headers`, `proxy` or `form`.
    let kind: String
    /// The whole URL, or JSON.
    let value: String
}

extension JobRequest {
    /// Parts the request into what the job keeps, as JSON, and its secrets.
    ///
    /// Secrets are the URL where `redactedURL` hides something of it, all `-H` fields, proxies with a user and
    /// password, and a form that has texts, such as a password.
    func parted(redactedURL: String) throws -> (stored: String, secrets: [RequestSecret]) {
        var open = self
        var secrets: [RequestSecret] = []
        if self.url != redactedURL {
            secrets.append(RequestSecret(kind: "url", value: self.url))
            open.url = redactedURL
        }
        if !self.headers.isEmpty {
            secrets.append(RequestSecret(kind: "headers", value: try JSON.text(self.headers)))
            open.headers = []
        }
        let proxies = [self.proxy.http, self.proxy.https, self.proxy.all]
        if proxies.contains(where: { $0?.utf8.contains(UInt8(ascii: "@")) == true }) {
            secrets.append(RequestSecret(kind: "proxy", value: try JSON.text(self.proxy)))
            open.proxy = ProxyEnvironment()
        }
        if case .form(let parts)? = self.upload?.body, parts.contains(where: \.isText) {
            secrets.append(RequestSecret(kind: "form", value: try JSON.text(parts)))
            open.upload?.body = .form(parts.filter { !$0.isText })
        }
        return (try JSON.text(open), secrets)
    }

    /// Puts a stored request and its secrets together again.
    init(stored: String, secrets: [RequestSecret]) throws {
        self = try JSON.value(JobRequest.self, stored)
        for secret in secrets {
            switch secret.kind {
            case "url": self.url = secret.value
            case "headers": self.headers = try JSON.value([RequestHeader].self, secret.value)
            case "proxy": self.proxy = try JSON.value(ProxyEnvironment.self, secret.value)
            case "form": self.upload?.body = .form(try JSON.value([FormPart].self, secret.value))
            default: break  // belongs to another part of the job
            }
        }
    }
}

extension FormPart {
    /// Whether a text stands in it.
    fileprivate var isText: Bool {
        if case .value = self.content { true } else { false }
    }
}

/// JSON as the database holds it: UTF-8 text, keys in order.
private enum JSON {
    static func text(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }

    static func value<Value: Decodable>(_ type: Value.Type, _ text: String) throws -> Value {
        try JSONDecoder().decode(type, from: Data(text.utf8))
    }
}
