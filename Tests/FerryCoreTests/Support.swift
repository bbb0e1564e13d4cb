import FerryCore

/// The moment at which the tests take place: 2026-11-30T12:00:00Z.
let now = Timestamp(year: 2026, month: 11, day: 30, hour: 12)

/// A head from pairs of field name and value.
func head(_ status: Int, _ fields: KeyValuePairs<String, String> = [:]) -> ResponseHead {
    ResponseHead(status: status, fields: fields.map { ResponseHead.Field(name: $0.key, value: $0.value) })
}

/// Texts that no parser may trap on.
let nastyTexts: [String] = [
    "", " ", "\0", "\n", "%", "%%", "%0", "\"", "\\", "\"\\", "-", "--", "/", "//", "*", "*/", "*/*", ",",
    ";", "=",
    "é", "🇩🇪", "e\u{301}", "\u{202E}", "\u{FFFD}", "'", "''", "UTF-8''", "bytes", "bytes ", "bytes */",
    "bytes -/",
    "bytes 0-/", "99999999999999999999999999", "-99999999999999999999999999", "9223372036854775807",
    "9223372036854775808", "1e308", "0x10", "+1", "١٢", String(repeating: "9", count: 10_000),
    String(repeating: "a;", count: 10_000), String(repeating: "\u{301}", count: 1_000),
]
