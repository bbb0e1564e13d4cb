import FerryCore
import FerryFiles
import FerryHTTP
import FerryStore
import Synchronization

extension UploadTransfer {
    /// A request to send.
    struct Outgoing: Sendable {
        var method: String
        var address: WebAddress
        var fields: [ResponseHead.Field]
        /// The bytes of the source that are the body, possibly none; nil for no body.
        var body: Range<Int64>?
        /// Whether it may be sent again if nobody knows what became of it.
        var isRepeatable = true
        /// Takes interim answers.
        var plan: PlanBox?

        init(
            method: String,
            address: WebAddress,
            fields: [ResponseHead.Field],
            body: Range<Int64>? = nil,
            isRepeatable: Bool = true
        ) {
            self.method = method
            self.address = address
            self.fields = fields
            self.body = body
            self.isRepeatable = isRepeatable
        }
    }

    /// A request that was answered.
    struct Sent: Sendable {
        let answer: UploadAnswer
        let kept: KeptAnswer
        let body: [UInt8]
        /// Who answered, after all redirects.
        let address: WebAddress
    }

    /// Bodies from this size on wait for the server's leave.
    private static let expectSize: Int64 = 1 << 20

    /// Sends a request and takes the answer, redirects followed.
    func send(_ outgoing: Outgoing, _ work: inout Work) async throws -> Sent {
        var outgoing = outgoing
        var redirects = RedirectPlan()
        let policy = self.services.configuration.transportPolicy(for: self.request)
        // An attempt after the first one asks even hosts that never answered: the refusal may be why it failed.
        var expects = work.knowledge.ignoresExpect != true || self.job.attempts > 1
        if let refusal = policy.refusal(of: outgoing.address.origin) {
            throw TransferFailure(.policy(refusal))
        }
        while true {
            let length = outgoing.body.map { $0.upperBound - $0.lowerBound } ?? 0
            let sent = try await self.exchange(
                outgoing,
                expects: expects && work.asksForLeave && length >= Self.expectSize,
                &work
            )
            let head = sent.answer.head
            if head.status == 417, expects {
                expects = false
                work.knowledge.ignoresExpect = true
                try await self.learn { $0.ignoresExpect = true }
                continue
            }
            let meaning = UploadRedirect.judge(
                status: head.status,
                method: outgoing.method,
                hasContent: length > 0,
                sentAll: sent.answer.sentAll
            )
            guard let meaning else { return sent }
            let target = head.first("Location").flatMap { URLParser.resolve($0, against: outgoing.address) }
            switch redirects.next(status: head.status, from: outgoing.address, to: target, policy: policy) {
            case .refuse(let why): throw TransferFailure(.policy(why))
            case .broken(let why): throw TransferFailure(.redirect(why))
            case .follow(let next, dropsCredentials: _):
                try self.services.checkPause(of: next)
                switch meaning {
                case .broken(let why): throw TransferFailure(.redirect(why))
                case .again:
                    guard length == 0 || next.origin == outgoing.address.origin else {
                        throw TransferFailure(.policy(Self.otherOrigin(outgoing.address, next)))
                    }
                    outgoing.address = next
                case .look:
                    outgoing = Outgoing(method: "GET", address: next, fields: [])
                }
            }
        }
    }

    private static func otherOrigin(_ from: WebAddress, _ to: WebAddress) -> String {
        "\(from.origin.host) redirects the upload to \(to.origin.scheme)://\(to.origin.host):\(to.origin.port),"
            + " which is another origin: give that address if it is the right one"
    }

    /// What happens while a request is under way that has to be committed at once.
    private enum Signal: Sendable {
        case interim(ResponseHead)
        /// The last byte of a body that must not be sent twice waits.
        case lastByte
        /// The disk has given what the body waited for.
        case canGoOn
    }

    /// One request, one answer.
    private func exchange(_ outgoing: Outgoing, expects: Bool, _ work: inout Work) async throws -> Sent {
        try self.running.checkStop()
        self.running.phase = .connecting
        let (signals, signal) = AsyncStream.makeStream(of: Signal.self)
        let source = outgoing.body.flatMap { range in
            range.isEmpty
                ? nil
                : FileSource(
                    file: work.file,
                    range: range,
                    identity: work.source,
                    running: self.running,
                    showsSent: !work.isResumable,
                    reading: self.services.reading,
                    gateReached: outgoing.isRepeatable ? nil : { @Sendable in signal.yield(.lastByte) },
                    canGoOn: { signal.yield(.canGoOn) }
                )
        }
        var request = self.httpRequest(outgoing, work)
        request.body = source ?? outgoing.body.map { _ in BytesSource() }
        request.expectsContinue = expects
        request.freshConnection = !outgoing.isRepeatable
        request.onInterim = { signal.yield(.interim($0)) }
        let started = self.services.time.monotonic()
        let exchange = self.services.loop.open(request)
        self.running.track(exchange, at: started)
        let sink = AnswerSink(
            limit: self.order.responsePath == nil ? KeptAnswer.bodyLimit : KeptAnswer.fileLimit
        )
        let before = work
        let (head, end, after) = try await withThrowingTaskGroup(of: Work.self) { group in
            group.addTask { try await self.watch(signals, exchange, source, outgoing, before) }
            let head = try? await exchange.head()
            if head != nil {
                self.services.waits.answered(by: self.running.host)
                exchange.receive(into: sink)
            }
            let end = await exchange.end()
            signal.finish()
            return (head, end, try await group.next() ?? before)
        }
        work = after
        self.log(outgoing.address, head, end)
        let length = source?.length ?? 0
        if work.memory.isSent, head != nil || end.takenBytes < length {
            work.memory.isSent = false
            try await self.commit(&work)
        }
        try self.running.checkStop()
        switch source?.failure {
        case .changed(let sentence): throw Self.changed(sentence)
        case .system(let error): throw error
        case nil: break
        }
        if end.ignoredExpect || length > 0 && end.sentBytes >= length { work.asksForLeave = false }
        if end.ignoredExpect, work.knowledge.ignoresExpect != true {
            work.knowledge.ignoresExpect = true
            try await self.learn { $0.ignoresExpect = true }
        }
        // Whatever became of the line afterwards, an answer is what counts.
        if let head {
            let elapsed = self.services.time.monotonic() - started
            return self.sent(outgoing, head, sink, sentAll: end.sentBytes >= length, elapsed: elapsed)
        }
        guard work.memory.isSent, work.memory.url == nil else { throw end.failure(of: outgoing.address) }
        work.memory.isSent = false
        try await self.commit(&work)
        throw TransferFailure(UploadVerdict.unanswered(host: outgoing.address.origin.host))
    }

    /// Commits what has to be safe while a request is under way.
    private func watch(
        _ signals: AsyncStream<Signal>,
        _ exchange: Exchange,
        _ source: FileSource?,
        _ outgoing: Outgoing,
        _ before: Work
    ) async throws -> Work {
        var work = before
        do {
            for await signal in signals {
                switch signal {
                case .interim(let head):
                    guard let plan = outgoing.plan else { continue }
                    guard plan.take(interim: head, location: self.location(in: head, of: outgoing)) else {
                        throw TransferFailure(.badResponse("the server named two places for one upload"))
                    }
                    try await self.commit(plan.memory.with(isSent: work.memory.isSent), &work)
                case .lastByte:
                    work.memory.isSent = true
                    try await self.commit(&work)
                    self.services.crash.reach(.uploadSent)
                    source?.openGate()
                    exchange.resume()
                case .canGoOn:
                    exchange.resume()
                }
            }
        } catch {
            exchange.cancel()
            throw error
        }
        return work
    }

    private func sent(
        _ outgoing: Outgoing,
        _ head: ResponseHead,
        _ sink: AnswerSink,
        sentAll: Bool,
        elapsed: Duration
    ) -> Sent {
        let bytes = sink.bytes
        let now = self.services.time.now()
        let date = head.first("Date").flatMap { HTTPDate.parse($0, now: now) }
        let location = self.location(in: head, of: outgoing)
        let answer = UploadAnswer(
            head: head,
            location: location,
            retryAfter: head.first("Retry-After").flatMap {
                RetryAfter.parse($0, responseDate: date, now: now)
            },
            sentAll: sentAll,
            elapsed: elapsed,
            words: KeptAnswer.words(head, bytes),
            text: String(decoding: bytes.prefix(KeptAnswer.wordsLimit), as: UTF8.self)
        )
        return Sent(
            answer: answer,
            kept: KeptAnswer(head: head, body: bytes, isCut: sink.isCut),
            body: bytes,
            address: outgoing.address
        )
    }

    /// `Location`, resolved; nil if there is none.
    private func location(in head: ResponseHead, of outgoing: Outgoing) -> String? {
        head.first("Location").flatMap { URLParser.resolve($0, against: outgoing.address) }?.url
    }

    private func httpRequest(_ outgoing: Outgoing, _ work: Work) -> HTTPRequest {
        let own = Set(outgoing.fields.map { $0.name.lowercased() })
        let isHome = outgoing.address.origin == work.address.origin
        let users = self.request.headers
            .filter { isHome || RedirectPlan.mayCross(header: $0.name) }
            .filter { !own.contains($0.name.lowercased()) || self.mayReplace($0.name, work) }
        let replaced = Set(users.map { $0.name.lowercased() })
        let fields =
            users.map { ResponseHead.Field(name: $0.name, value: $0.value) }
            + outgoing.fields.filter { !replaced.contains($0.name.lowercased()) }
            + [ResponseHead.Field(name: "Accept-Encoding", value: "identity")]
        var request = HTTPRequest(url: outgoing.address.url, method: outgoing.method, fields: fields)
        request.caFile = self.request.caFile
        request.stallTimeout = self.request.stallTimeout ?? request.stallTimeout
        request.tlsMinimum = self.services.configuration.tlsMinimum
        request.limit(as: self.running, at: outgoing.address.origin)
        let proxy = self.request.proxy
        request.proxy = (outgoing.address.origin.scheme == "https" ? proxy.https : proxy.http) ?? proxy.all
        request.noProxy = proxy.no
        return request
    }

    /// Of the fields that an upload brings along, a user may say what the body is, unless a protocol says so.
    private func mayReplace(_ name: String, _ work: Work) -> Bool {
        name.lowercased() == "content-type" && !work.isResumable && work.memory.formType == nil
    }

    private func log(_ address: WebAddress, _ head: ResponseHead?, _ end: ExchangeEnd) {
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
        self.running.amendLastHop(end)
    }
}

extension UploadMemory {
    /// The same with another mark; a plan knows nothing of it.
    func with(isSent: Bool) -> UploadMemory {
        var memory = self
        memory.isSent = isSent
        return memory
    }
}
