import FerryCore
import FerryFiles
import FerryHTTP
import FerryStore
import Synchronization

extension UploadTransfer {
    /// Does what a plan says until the server has it all.
    func follow(_ plan: some UploadPlan, _ work: inout Work) async throws -> UploadedFile {
        let box = PlanBox(plan)
        var step = box.begin()
        var last: Sent?
        while true {
            try await self.commit(box.memory, &work)
            try self.running.checkStop()
            switch step {
            case .call(let call):
                let address = try self.address(of: call, work)
                var outgoing = Outgoing(
                    method: call.method,
                    address: address,
                    fields: call.fields,
                    body: call.body,
                    // A body that is resumed is never whole twice; one that goes up at once may be.
                    isRepeatable: call.target == .upload || call.body?.isEmpty ?? true
                        || UploadVerdict.isRepeatable(
                            method: call.method,
                            hasKey: self.order.idempotencyKey != nil
                        )
                )
                if let algorithm = call.checksum, let body = call.body, !body.isEmpty {
                    outgoing.fields.append(try await self.checksum(algorithm, body, work))
                }
                outgoing.plan = box
                let sent: Sent
                do {
                    sent = try await self.send(outgoing, &work)
                } catch {
                    box.lost()
                    try await self.commit(box.memory.with(isSent: work.memory.isSent), &work)
                    throw error
                }
                last = sent
                step = box.take(sent.answer)
                if case .failed = step { try await self.keep(sent, &work) }
                self.services.crash.reach(.uploadOffsetKnown)
            case .done:
                guard let last else { throw TransferFailure(.badResponse("nothing was asked")) }
                try await self.keep(last, &work)
                // A tus upload is its own result; of the other protocol's the target has the last word.
                let result = work.record.transport == .tus ? box.memory.url : last.answer.location
                return try await self.finish(work, last, result: result ?? work.address.url)
            case .failed:
                throw self.failure(step, last?.answer, work)
            }
        }
    }

    /// The failure that a plan's step stands for, with the server's own words.
    func failure(_ step: UploadStep, _ answer: UploadAnswer?, _ work: Work) -> TransferFailure {
        guard case .failed(let cause) = step else { return TransferFailure(.badResponse("no verdict")) }
        guard case .status(let status, _, _, _) = cause, let words = answer?.words,
            answer?.head.status == status
        else { return TransferFailure(cause) }
        let sentence = RetryPlan.message(cause, host: work.address.origin.host)
        return TransferFailure(cause, message: "\(sentence): \(words)")
    }

    /// Where a call goes: to another origin only where the server has named it, to plain http only with leave.
    private func address(of call: UploadCall, _ work: Work) throws -> WebAddress {
        guard call.target == .upload else {
            guard self.order.nameWasAdded else { return work.address }
            return URLParser.resolve(".", against: work.address) ?? work.address
        }
        guard let url = work.memory.url, let parsed = try? URLParser.parse(url) else {
            throw TransferFailure(.badResponse("the upload's address cannot be read"))
        }
        try self.check(parsed.address, from: work.address)
        return parsed.address
    }

    /// Refuses an address that the policy does not allow.
    func check(_ address: WebAddress, from: WebAddress) throws(TransferFailure) {
        let policy = self.services.configuration.transportPolicy(for: self.request)
        if from.origin.scheme == "https", address.origin.scheme != "https" {
            throw TransferFailure(
                .policy(
                    "\(from.origin.host) wants the upload at a plain \(address.origin.scheme) address, which is"
                        + " refused: its proxy may have to tell it that it is reached by https"
                )
            )
        }
        if let refusal = policy.refusal(of: address.origin) { throw TransferFailure(.policy(refusal)) }
        if address.hasUserInfo {
            throw TransferFailure(.policy("\(from.origin.host) names an upload's address with a user name"))
        }
    }

    private func checksum(_ algorithm: DigestAlgorithm, _ range: Range<Int64>, _ work: Work) async throws
        -> ResponseHead.Field
    {
        let (file, running) = (work.file, self.running)
        let digests = try await self.services.disk.run {
            try file.digest(of: [algorithm], range: range, isCancelled: { running.stopEvent != nil })
        }
        guard let digest = digests[algorithm] else {
            throw TransferFailure(
                .refused(.localIO, "no \(algorithm.rawValue) could be computed", advice: nil)
            )
        }
        return ResponseHead.Field(
            name: "Upload-Checksum",
            value: "\(TusPlan.name(of: algorithm)) \(Base64.encode(digest.bytes))"
        )
    }

    // MARK: Commits

    /// Commits what a plan remembers, if that is something new.
    func commit(_ memory: UploadMemory, _ work: inout Work) async throws {
        guard memory != work.memory else { return }
        let isNewPlace = memory.url != work.memory.url
        work.memory = memory
        try await self.commit(&work)
        self.services.crash.reach(isNewPlace ? .uploadURLCommitted : .uploadOffsetCommitted)
    }

    /// Commits the upload's state; more bytes than ever acknowledged start the counts of tries anew.
    func commit(_ work: inout Work) async throws {
        let memory = work.memory
        work.record.url = memory.url
        work.record.offset = memory.offset
        work.record.state = memory.json
        let (record, now) = (work.record, self.services.time.now())
        let id = self.running.id
        try await self.services.store.write { transaction in
            try transaction.save(record)
            guard var job = try transaction.job(id) else { return }
            job.bytesDurable = memory.offset
            job.protocolName = record.transport.rawValue
            if memory.offset > job.bestBytes {
                job.bestBytes = memory.offset
                job.transientTries = 0
                job.doubtfulTries = 0
                job.progressAt = now
            }
            try transaction.save(job)
        }
        guard work.isResumable else { return }
        self.running.durable = memory.offset
        self.running.done = memory.offset
    }

    /// Commits the size of a body that is known only now.
    func commit(total: Int64) async throws {
        let id = self.running.id
        try await self.services.store.write { transaction in
            guard var job = try transaction.job(id) else { return }
            job.bytesTotal = total
            try transaction.save(job)
        }
    }

    /// Keeps an answer for `show`.
    func keep(_ sent: Sent, _ work: inout Work) async throws {
        work.record.answer = sent.kept.json
        let (record, id) = (work.record, self.running.id)
        let version = sent.answer.head.httpVersion
        try await self.services.store.write { transaction in
            try transaction.save(record)
            guard var job = try transaction.job(id) else { return }
            job.httpVersion = version
            try transaction.save(job)
        }
    }

    /// Remembers something of the host.
    func learn(_ change: @escaping @Sendable (inout HostKnowledge) -> Void) async throws {
        let host = self.running.host
        try await self.services.store.write { transaction in
            var record = try transaction.host(host) ?? HostRecord(host: host)
            var knowledge = HostKnowledge(json: record.learned)
            change(&knowledge)
            record.learned = knowledge.json
            try transaction.save(record)
        }
    }

    // MARK: Which protocol

    /// Settles the protocol of an upload that leaves the choice to the server.
    ///
    /// - Returns: Whether the choice rests on what other uploads to the host have taught.
    func chooseTransport(_ work: inout Work) async throws -> Bool {
        guard work.record.transport == .auto else { return false }
        let isForm = work.memory.formType != nil
        let plain: UploadProtocol = isForm ? .multipart : .put
        let isGuess = work.knowledge.hasPlainUploads == true
        work.record.transport = isGuess ? plain : try await self.discover(plain, &work)
        try await self.commit(&work)
        return isGuess
    }

    /// Asks with OPTIONS; tus comes first where a server speaks both, for it has one version.
    private func discover(_ plain: UploadProtocol, _ work: inout Work) async throws -> UploadProtocol {
        let question = ResumableUploadPlan.discovery
        let sent = try await self.send(
            Outgoing(
                method: question.method,
                address: try self.address(of: question, work),
                fields: question.fields
            ),
            &work
        )
        let head = sent.answer.head
        switch head.status {
        case 401, 407, 408, 425, 429, 502, 503, 504:
            try await self.keep(sent, &work)
            let cause = TransferCause.status(
                head.status,
                retryAfter: sent.answer.retryAfter,
                hadBytes: false,
                linkMayExpire: false
            )
            throw self.failure(.failed(cause), sent.answer, work)
        default:
            break
        }
        if plain == .put, self.order.method == nil, let features = TusFeatures(head) {
            work.memory.tus = features
            return .tus
        }
        guard ResumableUploadPlan.isSpoken(head) else {
            try await self.learn { $0.hasPlainUploads = true }
            return plain
        }
        var plan = ResumableUploadPlan(facts: self.facts(work), memory: work.memory)
        plan.learnDiscovery(head)
        work.memory = plan.memory
        return .ietf
    }
}

extension UploadTransfer.Work {
    /// Whether the server acknowledges bytes on the way.
    var isResumable: Bool { self.record.transport == .tus || self.record.transport == .ietf }
}

/// A plan that the network's thread and the attempt's task share.
final class PlanBox: Sendable {
    private let plan: Mutex<any UploadPlan>

    init(_ plan: some UploadPlan) {
        self.plan = Mutex(plan)
    }

    var memory: UploadMemory { self.plan.withLock { $0.memory } }

    func begin() -> UploadStep { self.plan.withLock { $0.begin() } }

    func take(_ answer: UploadAnswer) -> UploadStep { self.plan.withLock { $0.take(answer) } }

    func take(interim: ResponseHead, location: String?) -> Bool {
        self.plan.withLock { $0.take(interim: interim, location: location) }
    }

    func lost() { self.plan.withLock { $0.lost() } }
}
