import Glibc

/// A certificate authority of the test's own, and a certificate that it signed for localhost and 127.0.0.1.
public struct TestCertificates: Sendable {
    /// The authority's certificate, for clients to trust.
    public let authorityPath: String
    /// The server's certificate.
    public let certificatePath: String
    /// The server's private key.
    public let keyPath: String

    /// Makes all files in a folder, with the `openssl` command.
    ///
    /// - Throws: ``TestSupportError`` if the command is missing or fails.
    public static func make(in folder: String) throws -> TestCertificates {
        let files = TestCertificates(
            authorityPath: "\(folder)/test-ca.pem",
            certificatePath: "\(folder)/test-server.pem",
            keyPath: "\(folder)/test-server.key"
        )
        let openssl = ToolRunner(path: try findProgram("openssl", package: "openssl"))
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "3"]
        try openssl.runBlocking(
            ["req", "-x509"] + key + [
                "-keyout", "\(folder)/test-ca.key", "-out", files.authorityPath, "-subj",
                "/CN=Ferry test authority",
                "-addext", "keyUsage=critical,keyCertSign,cRLSign",
            ]
        )
        try openssl.runBlocking(
            ["req", "-x509"] + key + [
                "-CA", files.authorityPath, "-CAkey", "\(folder)/test-ca.key",
                "-keyout", files.keyPath, "-out", files.certificatePath, "-subj", "/CN=localhost",
                "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
                "-addext", "basicConstraints=critical,CA:FALSE",
            ]
        )
        return files
    }
}
