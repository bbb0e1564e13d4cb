import FerryCore
import FerryFiles
import FerryHTTP
import FerryStore
import Synchronization

/// Asks a server whether a new URL leads to the object that a partial is of; the partial is only read.
///
/// Proved is an object with the same strong validator or the same size, whose bytes equal the partial's last
/// 64 KiB. Validators of another origin are that server's own words: equal ones prove, differing ones say
/// nothing (RFC 9110 §8.8.3: a tag tells apart the representations of one resource). Of the same origin they
/// disprove. Where nothing was fetched nothing can be mixed up, and any answer that is a file will do.
struct URLProof: Sendable {
    /// The object behind the new URL.
    struct Proof: Sendable {
        /// The partial's generation at that time; nil if there was none.
        let generation: Int?
        /// The bytes that were durable at that time.
        let durable: Int64
        /// Whether there was anything to compare.
        let wasCompared: Bool
        /// What is known of the object by the new URL's server.
        let remote: RemoteObject
        /// The URL that answered, redacted.
        let finalURL: String

        /// Whether the job is still what was looked at: more bytes of the same partial are no matter.
        func holds(for job: JobRecord, _ file: FileRecord?) -> Bool {
            file?.generation == self.generation && (self.wasCompared || job.bytesDurable == self.durable)
        }
    }

    let services: TransferServices
    let job: JobRecord
    /// With the new URL.
    let request: JobRequest
    /// Whether the new URL has the old one's scheme, host and port.
    let isSameOrigin: Bool
    /// Whether a person has given the URL, and waits.
    var isForPerson = false

    /// Asks, and compares.
    ///
    /// - Throws: ``TransferFailure`` or ``FerryError`` with what speaks against the new URL.
    func run() async throws -> Proof {
        if let host = Engine.host(of: self.request.url) {
            try await self.services.awaitPause(of: host, isForPerson: self.isForPerson)
        }
        // Its counters and its stop are nobody's: the job itself may be running meanwhile.
        let running = RunningJob(id: self.job.id, host: self.job.host, attempt: self.job.attempts)
        let transfer = DownloadTransfer(
            services: self.services,
            running: running,
            job: self.job,
            request: self.request
        )
        guard let partial = try await transfer.openPartial(onlyForReading: true), partial.durable > 0 else {
            let plan = ResumeRequest(offset: 0, overlap: 0, condition: nil)
            let answer = try await transfer.ask(plan, stored: nil, conditions: [])
            guard case .whole(let remote, _, _) = answer.verdict else {
                throw await self.failure(answer, transfer)
            }
            answer.exchange.cancel()
            let id = self.job.id
            return Proof(
                generation: try await self.services.store.read { try $0.file(id)?.generation },
                durable: self.job.bytesDurable,
                wasCompared: false,
                remote: remote,
                finalURL: URLRedaction.redact(answer.address.url)
            )
        }
        return try await self.compare(partial, transfer)
    }

    private func compare(_ partial: PartialFile, _ transfer: DownloadTransfer) async throws -> Proof {
        let count = min(partial.durable, ResumePlan.overlapBytes)
        let plan = ResumeRequest(offset: partial.durable - count, overlap: count, condition: nil)
        var stored = partial.remote
        if !self.isSameOrigin {
            stored.entityTag = nil
            stored.lastModified = nil
            stored.lastModifiedIsStrong = false
        }
        let answer = try await transfer.ask(plan, stored: stored, conditions: [])
        var remote: RemoteObject
        let bytes: Range<Int64>
        let skip: Int64
        switch answer.verdict {
        case .append(_, let range, let first, _):
            var total: Int64?
            if case .satisfied(_, _, let whole)? = answer.head.first("Content-Range").flatMap(
                ContentRange.init
            ) {
                total = whole
            }
            remote = RemoteObject(head: answer.head, totalBytes: total, now: self.services.time.now())
            bytes = plan.offset..<min(range.end, partial.durable)
            skip = first
        case .whole(let object, _, _) where object.contentEncoding == nil:
            remote = object
            bytes = 0..<count
            skip = 0
            if plan.offset > 0 { remote.acceptsRanges = false }
        default:
            throw await self.failure(answer, transfer)
        }
        guard stored.compare(remote) != .different else {
            throw answer.dropped(TransferFailure(.changed, message: Self.otherVersion))
        }
        let isSameSize = remote.totalBytes != nil && remote.totalBytes == partial.remote.totalBytes
        guard isSameSize || partial.remote.compare(remote) == .same else {
            throw answer.dropped(
                TransferFailure(
                    .changed,
                    message: "its server gives neither the size nor the validator of the file that is there"
                )
            )
        }
        try await self.compare(bytes, skip: skip, of: partial, with: answer)
        remote.totalBytes = remote.totalBytes ?? partial.remote.totalBytes
        let named = DigestFields.expected(head: answer.head, trailers: [])
        let known = partial.remote.digests ?? []
        remote.digests = known + named.filter { !known.contains($0) }
        return Proof(
            generation: partial.record.generation,
            durable: partial.durable,
            wasCompared: true,
            remote: remote,
            finalURL: URLRedaction.redact(answer.address.url)
        )
    }

    private static let otherVersion = "what is there has another size, tag or date"

    /// Lets the body flow until the bytes of the partial have been compared.
    private func compare(
        _ range: Range<Int64>,
        skip: Int64,
        of partial: PartialFile,
        with answer: DownloadTransfer.Answer
    ) async throws {
        let file = partial.file
        let expected: [UInt8]
        do {
            expected = try await self.services.disk.run {
                var bytes = [UInt8](repeating: 0, count: range.count)
                try bytes.withUnsafeMutableBytes { try file.read(into: $0, at: range.lowerBound) }
                return bytes
            }
        } catch {
            answer.exchange.cancel()
            throw error
        }
        let sink = CompareSink(expected, skip: skip)
        answer.exchange.receive(into: sink)
        let end = await answer.exchange.end()
        switch sink.verdict {
        case .same: return
        case .differs: throw TransferFailure(.changed, message: "what is there has other bytes")
        case .open:
            throw TransferFailure(.transport(code: end.code, detail: end.detail, handshakeAlert: false))
        }
    }

    /// Why an answer proves nothing.
    private func failure(_ answer: DownloadTransfer.Answer, _ transfer: DownloadTransfer) async -> any Error {
        switch answer.verdict {
        case .refused:
            do {
                return try await transfer.refusal(answer)
            } catch {
                return error
            }
        case .bad(let why):
            return answer.dropped(TransferFailure(.badResponse(why)))
        case .askAgain(.changed):
            return answer.dropped(TransferFailure(.changed, message: Self.otherVersion))
        case .askAgain, .append, .whole, .complete, .redirect:
            let why = "what the server answered cannot be compared with what is there"
            return answer.dropped(TransferFailure(.badResponse(why)))
        }
    }
}

/// Compares the beginning of a body with bytes that are known, and ends the exchange as soon as it knows.
final class CompareSink: BodySink {
    /// What the comparison says.
    enum Verdict: Sendable {
        /// Not all has come.
        case open
        /// All bytes are equal.
        case same
        /// One is not.
        case differs
    }

    private struct State {
        var skip: Int64
        var rest: ArraySlice<UInt8>
        var verdict = Verdict.open
    }
    private let state: Mutex<State>

    /// Makes a sink that skips some bytes of the body and compares those that follow.
    init(_ expected: [UInt8], skip: Int64) {
        self.state = Mutex(State(skip: skip, rest: expected[...]))
    }

    func receive(_ bytes: UnsafeRawBufferPointer) -> SinkAnswer {
        self.state.withLock { state in
            let skip = Int(min(state.skip, Int64(bytes.count)))
            state.skip -= Int64(skip)
            let fresh = bytes.dropFirst(skip).prefix(state.rest.count)
            if !fresh.elementsEqual(state.rest.prefix(fresh.count)) {
                state.verdict = .differs
                return .stop
            }
            state.rest = state.rest.dropFirst(fresh.count)
            guard state.rest.isEmpty else { return .taken }
            state.verdict = .same
            return .stop
        }
    }

    /// What the comparison has said so far.
    var verdict: Verdict { self.state.withLock { $0.verdict } }
}
