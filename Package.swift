// swift-tools-version: 6.2
import PackageDescription

/// The settings of every Swift target: Swift 6 mode, warnings are errors, and the upcoming features we rely on.
///
/// Not `NonisolatedNonsendingByDefault`: Swift 6.3's optimizer breaks it, see "Modules" in the engine's Design page.
let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

func library(_ name: String, _ dependencies: [Target.Dependency], exclude: [String] = []) -> Target {
    .target(name: name, dependencies: dependencies, exclude: exclude, swiftSettings: settings)
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: dependencies + ["FerryTestSupport"], swiftSettings: settings)
}

let package = Package(
    name: "ferry",
    products: [
        .executable(name: "ferry", targets: ["ferry"]),
        .executable(name: "ferryd", targets: ["ferryd"]),
    ],
    targets: [
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CCrypto", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CXXHash", providers: [.apt(["libxxhash-dev"])]),
        .target(name: "CFerryLinux"),

        library("FerryCore", []),
        library("FerryFiles", ["FerryCore", "CCrypto", "CFerryLinux", "CXXHash"]),
        library("FerryStore", ["FerryCore", "CSQLite"]),
        library("FerryHTTP", ["FerryCore", "CCurl", "CCrypto", "CFerryLinux"]),
        library("FerryEngine", ["FerryCore", "FerryFiles", "FerryStore", "FerryHTTP", "CFerryLinux"]),
        library("FerryControl", ["FerryCore", "CFerryLinux"]),
        library("FerryDaemon", ["FerryCore", "FerryFiles", "FerryEngine", "FerryControl", "CFerryLinux"]),
        library("FerryCLI", ["FerryCore", "FerryControl", "CFerryLinux"]),
        .executableTarget(name: "ferry", dependencies: ["FerryCLI"], swiftSettings: settings),
        .executableTarget(name: "ferryd", dependencies: ["FerryDaemon"], swiftSettings: settings),

        .target(
            name: "FerryTestSupport",
            dependencies: ["CFerryLinux"],
            path: "Tests/FerryTestSupport",
            exclude: ["parse-form.py", "rufh-server.py", "tls-proxy.py"],
            swiftSettings: settings
        ),
        tests("FerryCoreTests", ["FerryCore"]),
        tests("FerryStoreTests", ["FerryStore", "FerryCore", "CSQLite"]),
        tests("FerryControlTests", ["FerryControl", "FerryCore"]),
        tests("FerryCLITests", ["FerryCLI", "FerryControl", "FerryCore"]),
        tests("FerryFilesTests", ["FerryFiles", "FerryCore", "CFerryLinux"]),
        tests("FerryHTTPTests", ["FerryHTTP", "FerryCore", "CCurl"]),
        tests("FerryEngineTests", ["FerryEngine", "FerryStore", "FerryHTTP", "FerryFiles", "FerryCore"]),
        tests("FerryDaemonTests", ["FerryDaemon", "FerryEngine", "FerryCore"]),
        tests("CrashTests", ["ferry", "ferryd", "FerryCore"]),
        tests("IntegrationTests", ["ferry", "ferryd", "FerryCore"]),
    ]
)
