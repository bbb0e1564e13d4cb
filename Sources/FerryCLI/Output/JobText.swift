import FerryControl
import FerryCore
import Glibc

/// Pieces of text about a job, safe for a terminal.
enum JobText {
    /// The file's name once it is known, else the URL.
    static func name(_ job: JobDocument) -> String {
        if let last = job.path?.split(separator: "/").last { return String(last).shown }
        return job.url.shown
    }

    /// The file's name once it is known, else the last part of the URL's path, else the URL.
    static func shortName(_ job: JobDocument) -> String {
        guard job.path == nil else { return Self.name(job) }
        let parts = job.url.prefix { $0 != "?" && $0 != "#" }.split(separator: "/")
        // The first two are scheme and host.
        guard parts.count > 2, let last = parts.last else { return job.url.shown }
        guard last.contains("%") else { return String(last).shown }
        return FileName.fromURLPath("/" + last)?.shown ?? String(last).shown
    }

    /// How much is done in percent; nil where the size is unknown; never 100 before the job is completed.
    static func percent(_ job: JobDocument) -> Int? {
        if job.state == .completed { return 100 }
        guard let total = job.bytesTotal else { return nil }
        guard total > 0 else { return 0 }
        let share = Double(max(0, job.bytesDone)) / Double(total) * 100
        return min(99, Int(share))
    }

    /// What the command that stands for a completed job prints: the file's path, or the URL of an upload.
    static func answer(_ job: JobDocument) -> String? {
        job.kind == .upload ? (job.resultUrl ?? job.url).shown : job.path
    }

    /// What an upload's bytes are counted by; nil for a download.
    ///
    /// Protocols that can go on in the middle count what the server has told to have; else a byte counts when it
    /// has left, and only the answer tells that it has come.
    static func counted(_ job: JobDocument) -> String? {
        guard job.kind == .upload else { return nil }
        return ["tus", "ietf"].contains(job.protocol) ? "acknowledged" : "sent"
    }

    /// `12.3 MiB`.
    static func size(_ bytes: Int64) -> String { ByteCount(bytes: bytes).text }

    /// `3.4 MiB/s`.
    static func rate(_ bytesPerSecond: Int64) -> String { ByteCount.rate(bytesPerSecond) }

    /// `1 m 12 s`.
    static func span(_ seconds: Int64) -> String { DurationText.format(.seconds(seconds)) }

    /// The seconds until a time, from 0, rounded up.
    static func seconds(until time: Timestamp, now: Timestamp) -> Int64 {
        max(0, (time.milliseconds - now.milliseconds + 999) / 1_000)
    }

    /// What a waiting or failed job says: reason, countdown, message.
    static func status(_ job: JobDocument, now: Timestamp) -> String {
        var text = job.state.rawValue
        if let reason = job.reason { text += " (\(reason.shown))" }
        if let time = job.retryAt, !job.state.isEnded {
            text += ", again in \(Self.span(Self.seconds(until: time, now: now)))"
        }
        if let message = job.message { text += ": \(message.shown)" }
        return text
    }

    /// The sentence about a job that failed or was cancelled, with what helps on lines of its own.
    static func failure(_ job: JobDocument) -> String {
        let name = "job \(job.id) (\(job.url.shown))"
        guard job.state == .failed else { return "\(name) was cancelled" }
        let cause = [job.reason, job.message].compactMap { $0?.shown }.joined(separator: ": ")
        let advice = job.advice.map { "\n\($0.shownLines)" } ?? ""
        return "\(name) failed\(cause.isEmpty ? "" : ": ")\(cause)\(advice)"
    }

    /// The colour of a state.
    static func color(_ state: JobState) -> Style.Color? {
        switch state {
        case .failed, .cancelled: .red
        case .completed: .green
        case .waiting, .paused: .yellow
        case .queued, .running: nil
        }
    }

    /// A time on the caller's clock: `2026-11-30 12:00:00 +0100`.
    static func time(_ time: Timestamp) -> String {
        var seconds = Int((time.milliseconds - (time.milliseconds % 1_000 + 1_000) % 1_000) / 1_000)
        var parts = tm()
        guard localtime_r(&seconds, &parts) != nil else { return time.description }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = bytes.withUnsafeMutableBytes { buffer in
            strftime(buffer.baseAddress, buffer.count, "%Y-%m-%d %H:%M:%S %z", &parts)
        }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }
}
