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
        } catch let error as SystemError {
            let cause = TransferCause.local(errno: error.errno, path: error.path)
            return .failed(TransferFailure(cause, message: error.description))
        } catch {
            return .storeFailed(error.asFerryError)
        }
    }

    private func attempt() async throws -> AttemptEnd {
        var partial = try await self.openPartial()
        if let partial, let total = self.job.bytesTotal, partial.durable == total,
            let lengthProved = self.job.lengthProved
        {
            return try await self.finish(partial, total: total, lengthProved: lengthProved)
        }
        let update = try await self.existingFile(partial)
        if self.request.ifExists == .skip, let update { return self.leftAlone(update) }
        var restarts = self.job.restarts
        var refused: RestartReason?
        while true {
            let offset = partial.map { $0.remote.isResumable ? $0.durable : 0 } ?? 0
            let conditions = partial == nil ? update?.conditions ?? [] : []
            let answer = try await self.ask(offset: offset, stored: partial?.remote, conditions: conditions)
            if answer.head.status == 304, !conditions.isEmpty, let update {
                answer.exchange.cancel()
                return self.leftAlone(update)
            }
            switch answer.verdict {
            case .whole(let remote, let length, let restart):
                if let held = partial, held.durable > 0 {
                    // One that is the same, as far as can be told, may be fetched anew as often as it takes.
                    if held.remote.compare(remote) == .different { restarts += 1 }
                    try await self.record(restarts: restarts, reason: refused ?? restart)
                }
                guard restarts <= Self.restartLimit else { throw answer.dropped(TransferFailure(.changed)) }
                let fresh = try await self.begin(answer, remote: remote, length: length, replacing: partial)
                switch fresh {
                case .partial(let begun): partial = begun
                case .leftAlone(let end): return end
                }
                guard let begun = partial else { continue }
                let end = try await self.receive(
                    answer.exchange,
                    into: begun,
                    from: 0,
                    skip: 0,
                    expected: length
                )
                let isProved = MessageLength(head: answer.head) != .untilClose
                return try await self.finish(begun, total: end, lengthProved: isProved)
            case .append(let remote, let range, let skip, _):
                guard var held = partial else { throw answer.dropped(TransferFailure(.shortBody)) }
                if remote.totalBytes != nil { held.remote.totalBytes = remote.totalBytes }
                let end = try await self.receive(
                    answer.exchange,
                    into: held,
                    from: held.durable,
                    skip: skip,
                    expected: range.end
                )
                held.durable = end
                partial = held
                let total = held.remote.totalBytes ?? self.running.total
                if total == end { return try await self.finish(held, total: end, lengthProved: true) }
                // A 206 may satisfy only part of what was asked (RFC 9110 §15.3.7): ask for the rest.
                guard end > offset else { throw TransferFailure(.shortBody) }
            case .complete:
                answer.exchange.cancel()
                guard let held = partial else {
                    throw TransferFailure(.badResponse("416 to a whole request"))
                }
                return try await self.finish(held, total: held.durable, lengthProved: true)
            case .askAgain(let reason):
                answer.exchange.cancel()
                refused = reason
                // The next request asks for the whole; the bytes stay until its body begins.
                partial?.remote.acceptsRanges = false
            case .refused, .redirect:
                throw try await self.refusal(answer)
            case .bad(let why):
                throw answer.dropped(TransferFailure(.badResponse(why)))
            }
            try self.running.checkStop()
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
    private func ask(
        offset: Int64,
        stored: RemoteObject?,
        conditions: [ResponseHead.Field]
    ) async throws -> Answer {
        guard let parsed = try? URLParser.parse(self.request.url) else {
            throw TransferFailure(.badResponse("the job's URL cannot be read"))
        }
        self.running.phase = .connecting
        let policy = self.services.configuration.transportPolicy(for: self.request)
        var address = parsed.address
        var plan = RedirectPlan()
        var statuses: [Int] = []
        var carriesSecrets = true
        if let refusal = policy.refusal(of: address.origin) { throw TransferFailure(.policy(refusal)) }
        while true {
            let fields =
                self.userFields(withSecrets: carriesSecrets)
                + ResumePlan.requestFields(offset: offset, stored: stored) + conditions
                + [ResponseHead.Field(name: "Accept-Encoding", value: "identity")]
            let exchange = self.services.loop.open(self.httpRequest(address, fields: fields))
            self.running.track(exchange)
            let head: ResponseHead
            do {
                head = try await exchange.head()
            } catch {
                self.log(address, head: nil)
                self.running.amendLastHop(error)
                try self.running.checkStop()
                throw self.failure(error)
            }
            self.log(address, head: head)
            let verdict = ResumePlan.judge(
                head,
                offset: offset,
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
            switch plan.next(status: head.status, from: address, to: target, policy: policy) {
            case .follow(let next, dropsCredentials: let drops):
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
        request.tlsMinimum = self.services.configuration.tlsMinimum
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

    private func isWebPage(_ remote: RemoteObject, _ asked: WebAddress, _ statuses: [Int]) -> Bool {
        WebPagePlan.isSuspicious(
            requestedURLPath: asked.path,
            outputName: self.request.output.map { String($0.split(separator: "/").last ?? "") },
            contentType: remote.contentType,
            redirectStatuses: statuses
        )
    }

    /// The failure that a status stands for, with the server's own words.
    private func refusal(_ answer: Answer) async throws -> TransferFailure {
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
            linkMayExpire: URLRedaction.linkMayExpire(self.request.url)
        )
        return TransferFailure(cause, message: self.serverWords(answer, sink.text))
    }

    /// Plain text that a server sent along with a refusal, nil if it is a page or nothing.
    private func serverWords(_ answer: Answer, _ body: String) -> String? {
        guard answer.head.first("Content-Type")?.lowercased().hasPrefix("text/plain") == true else {
            return nil
        }
        let line = FileName.display(body.split(whereSeparator: \.isNewline).first.map(String.init) ?? "")
        guard !line.isEmpty else { return nil }
        return RetryPlan.message(
            .status(answer.head.status, retryAfter: nil, hadBytes: false, linkMayExpire: false),
            host: self.running.host
        ) + ": " + line
    }

    /// The failure that an end without a complete message stands for.
    func failure(_ end: ExchangeEnd) -> TransferFailure {
        let isAlert = end.code == 35 && end.detail.lowercased().contains("alert")
        return TransferFailure(.transport(code: end.code, detail: end.detail, handshakeAlert: isAlert))
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

    private func record(restarts: Int, reason: RestartReason?) async throws {
        let id = self.running.id
        let now = self.services.time.now()
        try await self.services.store.write { transaction in
            guard var job = try transaction.job(id) else { return }
            job.restarts = restarts
            try transaction.save(job)
            try transaction.append(
                event: "restarted",
                job: id,
                state: job.state,
                reason: reason?.rawValue,
                message: "the download starts over",
                at: now
            )
        }
    }
}
