import FerryCore
import FerryHTTP

/// Where a request went that was not answered.
struct FailedTarget: Sendable {
    /// The name or address in the URL.
    let host: String
    /// The numeric addresses that a connection was tried to, the proxy's if there is one.
    let addresses: [String]
}

extension ExchangeEnd {
    /// The error that an end without a complete answer stands for.
    ///
    /// What the machine's sleep has ended is no failure: the attempt is interrupted, and nothing is spent.
    func failure(of address: WebAddress) -> any Error {
        guard !self.wasAsleep else { return RunningJob.Stopped() }
        let isAlert = self.code == 35 && self.detail.lowercased().contains("alert")
        var failure = TransferFailure(
            .transport(code: self.code, detail: self.detail, handshakeAlert: isAlert)
        )
        failure.message = self.sentence(address.origin.host)
        failure.target = FailedTarget(
            host: address.origin.host,
            addresses: self.tried.isEmpty ? self.address.map { [Self.host(of: $0)] } ?? [] : self.tried
        )
        return failure
    }

    /// What is to be said of an exchange that took too long, and in which phase it was.
    private func sentence(_ host: String) -> String? {
        guard self.code == 28 else { return nil }
        let what = self.stall?.text ?? "no connection within \(DurationText.format(self.total))"
        return FileName.display("\(host): \(what) while \(self.phase.text)")
    }

    /// The address without the port.
    private static func host(of address: String) -> String {
        let host = address.prefix(upTo: address.lastIndex(of: ":") ?? address.endIndex)
        return String(host.hasPrefix("[") ? host.dropFirst().dropLast() : host)
    }
}
