import FerryCore
import FerryFiles
import FerryHTTP
import FerryStore

/// One attempt of a download: from what is on disk to a published file, or to the cause of a failure.
///
/// Order is the heart of it: bytes are written, synced, and *then* their offset is committed; the file is
/// synced, renamed, its folder synced, and *then* the job is completed (by the caller).
struct DownloadTransfer: Sendable {
    /// An object that is another one each time is started over this often before the job fails with `changed`.
    static let restartLimit = 3

    let services: TransferServices
    let running: RunningJob
    let job: JobRecord
    let request: JobRequest

    /// Carries the attempt out; every way out is an ``AttemptEnd``.
    func run() async -> AttemptEnd {
        do {
            return try await self.attempt()
        } catch let failure as TransferFailure {
            return self.running.stopEvent == nil ? .failed(failure) : .stopped
        } catch is RunningJob.Stopped {
            return .stopped
        } catch is CancellationError {
            return .stopped  // in the midst of reading a file for its digest
        } catch let error as SystemError {
            let cause = TransferCause.local(errno: error.errno, path: error.path)
            return .failed(TransferFailure(cause, message: error.description))
        } catch {
            return .storeFailed(error.asFerryError)
        }
    }

    /// What an attempt has learned on its way.
    private struct Course {
        /// How often the object was another one, over all attempts.
        var restarts: Int
        /// The server sends everything when `If-Range` is there, although nothing has changed.
        var hasBrokenIfRange: Bool
        /// The server's word is not enough: compare.
        var wantsOverlap = false
        /// Why the last answer could not be used.
        var refused: RestartReason?
    }

    /// What an answer has led to.
    private enum Step {
        case ended(AttemptEnd)
        case goOn(PartialFile?)
    }

    private func attempt() async throws -> AttemptEnd {
        if self.job.bytesDurable == self.job.bytesTotal {
            // The last attempt may have got as far as the rename.
            let search = PublishedSearch(services: self.services, job: self.job)
            let fingerprint = URLParser.fingerprint(self.request.url)
            if let file = try await search.run(fingerprint: fingerprint) { return .published(file) }
        }
        var partial = try await self.openPartial()
        var course = Course(restarts: self.job.restarts, hasBrokenIfRange: try await self.hasBrokenIfRange())
        if partial?.remote.awaitsDigest == true {
            // A stop came between the last byte and the trailers: they come again with the last bytes.
            course.wantsOverlap = partial.flatMap { self.lengthProved(of: $0) } != nil
        } else if let whole = partial, let lengthProved = self.lengthProved(of: whole) {
            do {
                return try await self.complete(whole, total: whole.durable, lengthProved: lengthProved)
            } catch let mismatch as DigestMismatch {
                partial = try await self.refuse(mismatch)
            } catch is PartialChanged {
                partial = try await self.giveUp(&course)
            }
        }
        let update = try await self.existingFile(partial)
        if self.request.ifExists == .skip, let update { return self.leftAlone(update) }
        while true {
            let plan = ResumePlan.request(
                durable: partial?.durable ?? 0,
                stored: partial?.remote,
                hasBrokenIfRange: course.hasBrokenIfRange,
                wantsOverlap: course.wantsOverlap
            )
            let conditions = partial == nil ? update?.conditions ?? [] : []
            let answer = try await self.ask(plan, stored: partial?.remote, conditions: conditions)
            if answer.head.status == 304, !conditions.isEmpty, let update {
                answer.exchange.cancel()
                return self.leftAlone(update)
            }
            do {
                switch try await self.take(answer, plan, partial, &course) {
                case .ended(let end): return end
                case .goOn(let next): partial = next
                }
            } catch is OverlapDiffers {
                partial = try await self.startOver(partial, &course)
            } catch let mismatch as DigestMismatch {
                partial = try await self.refuse(mismatch)
            } catch is PartialChanged {
                partial = try await self.giveUp(&course)
            }
            try self.running.checkStop()
        }
    }

    /// Whether its length is proved, if all of a file came before; nil if something is missing, or may be.
    private func lengthProved(of partial: PartialFile) -> Bool? {
        if partial.durable == self.job.bytesTotal, let proved = self.job.lengthProved { return proved }
        // The body had ended, and a crash came before anything else: its head tells that nothing is missing.
        return partial.durable > 0 && partial.durable == partial.remote.totalBytes ? true : nil
    }

    /// Does what the verdict on an answer says.
    private func take(
        _ answer: Answer,
        _ plan: ResumeRequest,
        _ partial: PartialFile?,
        _ course: inout Course
    ) async throws -> Step {
        switch answer.verdict {
        case .whole(_, _, restart: .rangesIgnored) where plan.condition != nil && !course.hasBrokenIfRange:
            // The same object, and yet all of it: some servers do so whenever If-Range is there. Its tag on the
            // 206 proves as much.
            answer.exchange.cancel()
            course.hasBrokenIfRange = true
            return .goOn(partial)
        case .whole(let remote, let length, let restart):
            return try await self.takeWhole(answer, remote, length, restart, partial, &course)
        case .append(let remote, let range, let skip, let isProved):
            guard let held = partial else { throw answer.dropped(TransferFailure(.shortBody)) }
            guard isProved || plan.overlap > 0 else {
                answer.exchange.cancel()
                course.wantsOverlap = true
                guard held.durable <= ResumePlan.overlapBytes else { return .goOn(held) }
                return .goOn(self.unresumable(held))
            }
            if isProved, course.hasBrokenIfRange { try await self.learnBrokenIfRange() }
            return try await self.takePart(answer, remote, range, skip: skip, plan, held, &course)
        case .complete:
            answer.exchange.cancel()
            guard let held = partial else { throw TransferFailure(.badResponse("416 to a whole request")) }
            let told = RemoteObject(head: answer.head, totalBytes: nil, now: self.services.time.now())
            let isOurs = held.remote.totalBytes != nil || held.remote.compare(told) == .same
            if !course.wantsOverlap, held.remote.awaitsDigest == true || !isOurs {
                // The trailers come again with the end; where the length was never told, another object may be just
                // as long.
                course.wantsOverlap = true
                return .goOn(held)
            }
            return .ended(try await self.complete(held, total: held.durable, lengthProved: true))
        case .askAgain(let reason):
            answer.exchange.cancel()
            course.refused = reason
            return .goOn(partial.map { self.unresumable($0) })
        case .refused, .redirect:
            throw try await self.refusal(answer)
        case .bad(let why):
            throw answer.dropped(TransferFailure(.badResponse(why)))
        }
    }

    /// Takes a body that begins at byte 0.
    private func takeWhole(
        _ answer: Answer,
        _ remote: RemoteObject,
        _ length: Int64?,
        _ restart: RestartReason?,
        _ partial: PartialFile?,
        _ course: inout Course
    ) async throws -> Step {
        if let held = partial, held.durable > 0 {
            // One that is the same, as far as can be told, may be fetched anew as often as it takes.
            let isOther = held.remote.compare(remote) == .different
            if isOther { course.restarts += 1 }
            guard course.restarts <= Self.restartLimit else {
                throw answer.dropped(TransferFailure(.changed))
            }
            if isOther, let older = try await self.olderPartial(of: remote) {
                answer.exchange.cancel()
                try await self.record(restarts: course.restarts, reason: .changedBack)
                return .goOn(try await self.takeUp(older))
            }
            try await self.record(restarts: course.restarts, reason: course.refused ?? restart)
        } else if let older = try await self.olderPartial(of: remote) {
            // The newest has nothing yet: its object was seen, and was gone before a byte of it came.
            answer.exchange.cancel()
            try await self.record(restarts: course.restarts, reason: .changedBack)
            return .goOn(try await self.takeUp(older))
        }
        if let length, let limit = self.request.sizeLimitBytes, length > limit {
            throw answer.dropped(TransferFailure(.tooLarge))
        }
        var object = remote
        let named = DigestFields.expected(head: answer.head, trailers: [])
        object.digests = named.isEmpty ? nil : named
        object.awaitsDigest = DigestFields.areAnnounced(by: answer.head) ? true : nil
        let begun: PartialFile
        switch try await self.begin(answer, remote: object, length: self.request.compressed ? nil : length) {
        case .partial(let fresh): begun = fresh
        case .leftAlone(let end): return .ended(end)
        }
        let isCoded = remote.contentEncoding != nil && self.request.compressed
        let body = try await self.receive(answer, into: begun, BodyPlan(expected: isCoded ? nil : length))
        return .ended(
            try await self.complete(
                body.partial,
                total: body.partial.durable,
                // A decoder does not tell that a packed body ends too early.
                lengthProved: MessageLength(head: answer.head) != .untilClose && !isCoded,
                computed: body.digests
            )
        )
    }

    /// Takes a body that goes on where the partial ends.
    private func takePart(
        _ answer: Answer,
        _ remote: RemoteObject,
        _ range: ByteRange,
        skip: Int64,
        _ plan: ResumeRequest,
        _ partial: PartialFile,
        _ course: inout Course
    ) async throws -> Step {
        var held = partial
        held.remote.totalBytes = remote.totalBytes ?? held.remote.totalBytes
        held.add(DigestFields.expected(head: answer.head, trailers: []))
        if DigestFields.areAnnounced(by: answer.head) { held.remote.awaitsDigest = true }
        let before = held.durable
        held = try await self.receive(
            answer,
            into: held,
            BodyPlan(known: skip + plan.overlap, expected: max(range.end, before))
        ).partial
        let total = held.remote.totalBytes ?? self.running.total
        if total == held.durable {
            return .ended(try await self.complete(held, total: held.durable, lengthProved: true))
        }
        // A 206 may satisfy only part of what was asked (RFC 9110 §15.3.7): ask for the rest.
        if held.durable > before { return .goOn(held) }
        // Less than what was to be compared: asked for again, it would bring nothing new again.
        guard plan.overlap > 0 else { throw TransferFailure(.shortBody) }
        course.refused = .tooShort
        return .goOn(self.unresumable(held))
    }

    /// The partial with the mark that the next request asks for the whole; its bytes stay until that begins.
    private func unresumable(_ partial: PartialFile) -> PartialFile {
        var partial = partial
        partial.remote.acceptsRanges = false
        return partial
    }

    /// Goes back to nothing after an overlap that differs: what the server has is another object.
    private func startOver(_ partial: PartialFile?, _ course: inout Course) async throws -> PartialFile? {
        course.restarts += 1
        course.refused = .changed
        try await self.record(restarts: course.restarts, reason: .changed)
        guard course.restarts <= Self.restartLimit else { throw TransferFailure(.changed) }
        return partial.map { self.unresumable($0) }
    }

    /// Gives up a partial that another program has changed while it was written.
    private func giveUp(_ course: inout Course) async throws -> PartialFile? {
        course.restarts += 1
        try await self.record(restarts: course.restarts, reason: .partialChanged)
        guard course.restarts <= Self.restartLimit else {
            throw TransferFailure(.changed, message: "another program keeps changing the partial file")
        }
        return nil
    }

    /// Gives a file with a wrong digest one more chance, from its beginning and without what was there.
    private func refuse(_ mismatch: DigestMismatch) async throws -> PartialFile {
        guard try await self.recordMismatch(mismatch) else {
            throw TransferFailure(.checksum(self.name(of: mismatch.expected)))
        }
        var wrong = self.unresumable(mismatch.partial)
        wrong.prefix = .empty
        return wrong
    }

    /// `sha-256`, with the field that named it if it was not the user.
    private func name(of digest: ExpectedDigest) -> String {
        let algorithm = digest.checksum.algorithm.rawValue
        return digest.source == .user ? algorithm : "\(algorithm) of its \(digest.source.rawValue)"
    }

    private func hasBrokenIfRange() async throws -> Bool {
        let host = self.running.host
        let learned = try await self.services.store.read { try $0.host(host)?.learned }
        return HostKnowledge(json: learned).hasBrokenIfRange
    }

    private func learnBrokenIfRange() async throws {
        let host = self.running.host
        try await self.services.store.write { transaction in
            var record = try transaction.host(host) ?? HostRecord(host: host)
            var knowledge = HostKnowledge(json: record.learned)
            guard !knowledge.hasBrokenIfRange else { return }
            knowledge.hasBrokenIfRange = true
            record.learned = knowledge.json
            try transaction.save(record)
        }
    }

    // MARK: Asking

    /// The answer to a request, after all redirects; its body stands still.
    struct Answer: Sendable {
        let exchange: Exchange
        let head: ResponseHead
        let verdict: AnswerVerdict
        let address: WebAddress
        let redirectStatuses: [Int]

        /// Ends the exchange because of a failure.
        func dropped(_ failure: TransferFailure) -> TransferFailure {
            self.exchange.cancel()
            return failure
        }
    }

    /// Sends the request, follows redirects, and judges the head of the final answer.
    func ask(
        _ plan: ResumeRequest,
        stored: RemoteObject?,
        conditions: [ResponseHead.Field]
    ) async throws -> Answer {
        guard let parsed = try? URLParser.parse(self.request.url) else {
            throw TransferFailure(.badResponse("the job's URL cannot be read"))
        }
        self.running.phase = .connecting
        let policy = self.services.configuration.transportPolicy(for: self.request)
        var address = parsed.address
        var redirects = RedirectPlan()
        var statuses: [Int] = []
        var carriesSecrets = true
        if let refusal = policy.refusal(of: address.origin) { throw TransferFailure(.policy(refusal)) }
        while true {
            let fields =
                self.userFields(withSecrets: carriesSecrets)
                + plan.fields + conditions + self.codingFields
            let exchange = self.services.loop.open(self.httpRequest(address, fields: fields))
            self.running.track(exchange, at: self.services.time.monotonic())
            let head: ResponseHead
            do {
                head = try await exchange.head()
            } catch {
                self.log(address, head: nil)
                self.running.amendLastHop(error)
                try self.running.checkStop()
                throw error.failure(of: address)
            }
            self.services.waits.answered(by: self.running.host)
            self.log(address, head: head)
            let verdict = ResumePlan.judge(
                head,
                offset: plan.offset,
                overlap: plan.overlap,
                stored: stored,
                now: self.services.time.now()
            )
            guard verdict == .redirect else {
                if case .whole(let remote, _, _) = verdict, self.isWebPage(remote, parsed.address, statuses) {
                    exchange.cancel()
                    throw TransferFailure(.webPage)
                }
                return Answer(
                    exchange: exchange,
                    head: head,
                    verdict: verdict,
                    address: address,
                    redirectStatuses: statuses
                )
            }
            await self.drain(exchange, head)
            statuses.append(head.status)
            let target = head.first("Location").flatMap { URLParser.resolve($0, against: address) }
            switch redirects.next(status: head.status, from: address, to: target, policy: policy) {
            case .follow(let next, dropsCredentials: let drops):
                try self.services.checkPause(of: next)
                address = next
                carriesSecrets = !drops
            case .refuse(let why): throw TransferFailure(.policy(why))
            case .broken(let why): throw TransferFailure(.redirect(why))
            }
        }
    }

    private func httpRequest(_ address: WebAddress, fields: [ResponseHead.Field]) -> HTTPRequest {
        var request = HTTPRequest(url: address.url, fields: fields)
        request.caFile = self.request.caFile
        request.decodes = self.request.compressed
        let configuration = self.services.configuration
        request.tlsMinimum = configuration.tlsMinimum
        request.stallTimeout = self.request.stallTimeout ?? request.stallTimeout
        request.http2 = configuration.allowsHTTP2(address.origin.hostAndPort)
        request.limit(as: self.running, at: address.origin)
        // With many transfers each gets less: their buffers are all the memory that grows with their number.
        if configuration.running > 64 { request.bufferBytes = 32 * 1_024 }
        // libcurl unpacks all of a buffer before it lets the transfer pause, and bears 64 MiB of that: deflate
        // makes a byte a thousand at most.
        if request.decodes { request.bufferBytes = min(request.bufferBytes, 16 * 1_024) }
        let proxy = self.request.proxy
        request.proxy = (address.origin.scheme == "https" ? proxy.https : proxy.http) ?? proxy.all
        request.noProxy = proxy.no
        return request
    }

    /// The user's `-H` fields: all of them while the job's own origin is asked, the harmless ones elsewhere.
    private func userFields(withSecrets: Bool) -> [ResponseHead.Field] {
        self.request.headers
            .filter { withSecrets || RedirectPlan.mayCross(header: $0.name) }
            .map { ResponseHead.Field(name: $0.name, value: $0.value) }
    }

    /// With `--compressed` libcurl asks for the codings that it can undo; else none is wanted.
    private var codingFields: [ResponseHead.Field] {
        self.request.compressed ? [] : [ResponseHead.Field(name: "Accept-Encoding", value: "identity")]
    }

    private func isWebPage(_ remote: RemoteObject, _ asked: WebAddress, _ statuses: [Int]) -> Bool {
        WebPagePlan.isSuspicious(
            requestedURLPath: asked.path,
            outputName: self.request.output.map { String($0.split(separator: "/").last ?? "") },
            contentType: remote.contentType,
            redirectStatuses: statuses
        )
    }

    /// The failure that a status stands for, with the server's own words.
    func refusal(_ answer: Answer) async throws -> TransferFailure {
        let sink = MessageSink()
        answer.exchange.receive(into: sink)
        // However this body ends: the words are a courtesy, the status is the failure.
        self.running.amendLastHop(await answer.exchange.end())
        try self.running.checkStop()
        let now = self.services.time.now()
        let date = answer.head.first("Date").flatMap { HTTPDate.parse($0, now: now) }
        let cause = TransferCause.status(
            answer.head.status,
            retryAfter: answer.head.first("Retry-After").flatMap {
                RetryAfter.parse($0, responseDate: date, now: now)
            },
            hadBytes: self.job.bytesDurable > 0,
            linkMayExpire: self.request.renew != nil || URLRedaction.linkMayExpire(self.request.url)
        )
        return TransferFailure(cause, message: self.serverWords(cause, answer, sink.text))
    }

    /// The words that a server sent along with a refusal, nil if it is a page or nothing.
    private func serverWords(_ cause: TransferCause, _ answer: Answer, _ body: String) -> String? {
        guard let type = answer.head.first("Content-Type")?.lowercased() else { return nil }
        let first = body.split(whereSeparator: \.isNewline).first.map(String.init) ?? ""
        let text = type.hasPrefix("text/plain") ? first : body
        guard let line = KeptAnswer.words(answer.head, Array(text.utf8)) else { return nil }
        return RetryPlan.message(cause, host: self.running.host) + ": " + line
    }

    /// Lets a short body that nobody wants pass, so that its connection can be used again.
    private func drain(_ exchange: Exchange, _ head: ResponseHead) async {
        if case .length(let length) = MessageLength(head: head), length <= MessageSink.limitBytes {
            exchange.receive(into: MessageSink())
        } else {
            exchange.cancel()
        }
        self.running.amendLastHop(await exchange.end())
    }

    private func log(_ address: WebAddress, head: ResponseHead?) {
        self.running.add(
            hop: HopRecord(
                job: self.running.id,
                attempt: self.running.attempt,
                index: self.running.hops.count,
                url: URLRedaction.redact(address.url),
                status: head?.status,
                address: nil,
                httpVersion: head?.httpVersion,
                firstByteMs: nil,
                totalMs: nil
            )
        )
    }

    /// Tells in the log that a download starts over, or goes back to another partial.
    func record(restarts: Int, reason: RestartReason?) async throws {
        let id = self.running.id
        let now = self.services.time.now()
        let message =
            switch reason {
            case .partialChanged: "another program changed the partial file; the download starts over"
            case .changedBack: "the server has the earlier file again; the download goes on with it"
            default: "the download starts over"
            }
        try await self.services.store.write { transaction in
            guard var job = try transaction.job(id) else { return }
            job.restarts = restarts
            try transaction.save(job)
            try transaction.append(
                event: "restarted",
                job: id,
                state: job.state,
                reason: reason?.rawValue,
                message: message,
                at: now
            )
        }
    }
}
