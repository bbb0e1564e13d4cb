import Glibc

/// A real web server on free ports of 127.0.0.1, plain and with TLS, that serves one folder.
///
/// Paths: `/` everything with ranges, `/dav/` takes PUT, `/slow/` 500 kB/s after the first 64 kB, `/gz/` compressed on request,
/// `/norange/` without ranges, `/slowgz/` and `/slownorange/` both, `/dated/` slow and without tags, `/redir/` redirects to `/`, `/503` with `Retry-After: 1`. It stops when it is
/// released.
public final class RealServer: Sendable {
    /// Which program serves.
    public enum Kind: String, Sendable, CaseIterable {
        /// nginx.
        case nginx
        /// The Apache HTTP server.
        case apache
    }

    /// Which program serves.
    public let kind: Kind
    /// The folder that is served; tests put files there.
    public let root: String
    private let plainPort: Int
    private let securePort: Int
    private let process: RunningTool

    /// Starts a server with its files in a folder, and waits until it answers.
    ///
    /// - Throws: ``TestSupportError`` if the program is missing, with the package to install, or with what the
    ///   program said if it does not start.
    public init(_ kind: Kind, in folder: TemporaryFolder, certificates: TestCertificates) async throws {
        // Workers of a server started by root are another user.
        guard chmod(folder.path, 0o755) == 0 else {
            throw TestSupportError.system("chmod \(folder.path)", errno)
        }
        self.kind = kind
        self.root = try folder.makeFolder("www")
        let uploads = try folder.makeFolder("www/dav")
        guard chmod(uploads, 0o777) == 0 else { throw TestSupportError.system("chmod \(uploads)", errno) }
        let home = try folder.makeFolder("\(kind.rawValue)-\(try freePort())")
        var lastError = TestSupportError("no attempt was made")
        // A port that was free may be taken by somebody else before the server binds it.
        for _ in 1...3 {
            let setup = Setup(
                root: self.root,
                home: home,
                plainPort: try freePort(),
                securePort: try freePort(),
                certificates: certificates
            )
            let process = try kind.start(setup)
            do {
                try await Self.waitUntilAnswers(process, setup)
                self.plainPort = setup.plainPort
                self.securePort = setup.securePort
                self.process = process
                return
            } catch let error as TestSupportError {
                lastError = error
            }
        }
        throw lastError
    }

    deinit {
        self.stop()
    }

    /// The plain URL of a path with its leading slash.
    public func url(_ path: String) -> String {
        "http://localhost:\(self.plainPort)\(path)"
    }

    /// The URL of a path over TLS.
    public func secureURL(_ path: String) -> String {
        "https://localhost:\(self.securePort)\(path)"
    }

    /// The server's process, which a test may stop and continue.
    public var pid: Int32 {
        self.process.pid
    }

    /// Kills the server with its workers, and returns when its ports refuse; repeating it does nothing.
    public func stop() {
        self.process.kill()
        let end = ContinuousClock.now + .seconds(10)
        while answersOnLoopback(port: self.plainPort) || answersOnLoopback(port: self.securePort) {
            guard ContinuousClock.now < end else { return }
            _ = poll(nil, 0, 5)
        }
    }

    /// Connects until somebody answers; a server tells no one when it listens.
    private static func waitUntilAnswers(_ process: RunningTool, _ setup: Setup) async throws {
        let end = ContinuousClock.now + .seconds(20)
        while !answersOnLoopback(port: setup.plainPort) || !answersOnLoopback(port: setup.securePort) {
            guard !process.hasEnded, ContinuousClock.now < end else {
                process.kill()
                let log = (try? readFile("\(setup.home)/error.log")) ?? []
                throw TestSupportError(
                    "a server did not start: \(process.text(of: .stderr))\(String(decoding: log, as: UTF8.self))"
                )
            }
            _ = poll(nil, 0, 5)
        }
        // The port may be another program's if this one ended at once.
        if process.hasEnded { throw TestSupportError("a server ended: \(process.text(of: .stderr))") }
    }
}

/// What the configuration of a server names.
private struct Setup {
    let root: String
    let home: String
    let plainPort: Int
    let securePort: Int
    let certificates: TestCertificates
}

extension RealServer.Kind {
    fileprivate func start(_ setup: Setup) throws -> RunningTool {
        let path = "\(setup.home)/server.conf"
        switch self {
        case .nginx:
            let program = try findProgram("nginx", package: "nginx")
            try writeFile(path, Self.nginxConfiguration(setup).utf8)
            return try ToolRunner(path: program)
                .start(["-c", path, "-p", setup.home, "-e", "\(setup.home)/error.log"])
        case .apache:
            let program = try findProgram("apache2", package: "apache2")
            try writeFile(path, Self.apacheConfiguration(setup).utf8)
            return try ToolRunner(path: program).start(["-f", path, "-D", "FOREGROUND"])
        }
    }

    private static func nginxConfiguration(_ setup: Setup) -> String {
        let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map { "\($0)_temp_path \(setup.home)/\($0);" }
            .joined(separator: " ")
        return """
            daemon off; pid \(setup.home)/server.pid; error_log \(setup.home)/error.log; worker_processes 1;
            \(getuid() == 0 ? "user root;" : "")
            events {}
            http {
                access_log off; default_type application/octet-stream; \(folders)
                server {
                    listen 127.0.0.1:\(setup.plainPort);
                    listen 127.0.0.1:\(setup.securePort) ssl http2;
                    ssl_certificate \(setup.certificates.certificatePath);
                    ssl_certificate_key \(setup.certificates.keyPath);
                    root \(setup.root);
                    client_max_body_size 0;
                    location /dav/ { dav_methods PUT; create_full_put_path on; }
                    location /slow/ { alias \(setup.root)/; limit_rate 500k; limit_rate_after 64k; }
                    location /norange/ { alias \(setup.root)/; max_ranges 0; }
                    location /gz/ { alias \(setup.root)/; gzip on; gzip_types *; gzip_min_length 1; }
                    location /dated/ { alias \(setup.root)/; etag off; limit_rate 500k; limit_rate_after 64k; }
                    location /slowgz/ {
                        alias \(setup.root)/; limit_rate 500k; limit_rate_after 64k;
                        gzip on; gzip_types *; gzip_min_length 1;
                    }
                    location /slownorange/ {
                        alias \(setup.root)/; max_ranges 0; limit_rate 500k; limit_rate_after 64k;
                    }
                    location /redir/ { rewrite ^/redir/(.*)$ http://localhost:\(setup.plainPort)/$1 redirect; }
                    location /503 { add_header Retry-After 1 always; return 503; }
                }
            }

            """
    }

    private static func apacheConfiguration(_ setup: Setup) -> String {
        let modules = [
            "mpm_event", "authz_core", "alias", "env", "headers", "ratelimit", "filter", "deflate", "ssl",
            "socache_shmcb", "dav", "dav_fs",
        ]
        let loading = modules.map { "LoadModule \($0)_module modules/mod_\($0).so" }.joined(separator: "\n")
        return """
            ServerRoot /usr/lib/apache2
            \(loading)
            ServerName localhost
            Listen 127.0.0.1:\(setup.plainPort)
            Listen 127.0.0.1:\(setup.securePort)
            PidFile \(setup.home)/server.pid
            ErrorLog \(setup.home)/error.log
            DefaultRuntimeDir \(setup.home)
            Mutex pthread
            \(getuid() == 0 ? "User www-data\nGroup www-data" : "")
            DocumentRoot \(setup.root)
            DavLockDB \(setup.root)/dav/.lock
            Alias /slowgz \(setup.root)
            Alias /slownorange \(setup.root)
            Alias /slow \(setup.root)
            Alias /dated \(setup.root)
            Alias /gz \(setup.root)
            Alias /norange \(setup.root)
            RedirectMatch 302 ^/redir/(.*)$ http://localhost:\(setup.plainPort)/$1
            RedirectMatch 503 ^/503
            <Directory \(setup.root)>
                Require all granted
            </Directory>
            <Location /dav>
                Dav On
            </Location>
            <Location /slow>
                SetOutputFilter RATE_LIMIT
                SetEnv rate-limit 488
                SetEnv rate-initial-burst 64
            </Location>
            <LocationMatch ^/(dated|slowgz|slownorange)>
                SetOutputFilter RATE_LIMIT
                SetEnv rate-limit 488
                SetEnv rate-initial-burst 64
            </LocationMatch>
            <Location /dated>
                FileETag None
            </Location>
            <Location /gz>
                SetOutputFilter DEFLATE
            </Location>
            <Location /slowgz>
                SetOutputFilter RATE_LIMIT;DEFLATE
            </Location>
            <LocationMatch ^/(slow)?norange>
                MaxRanges none
            </LocationMatch>
            <Location /503>
                Header always set Retry-After 1
            </Location>
            <VirtualHost 127.0.0.1:\(setup.securePort)>
                SSLEngine on
                SSLCertificateFile \(setup.certificates.certificatePath)
                SSLCertificateKeyFile \(setup.certificates.keyPath)
                RedirectMatch 302 ^/redir/(.*)$ http://localhost:\(setup.plainPort)/$1
                RedirectMatch 503 ^/503
            </VirtualHost>

            """
    }
}
