import FerryCore
import FerryFiles
import FerryHTTP
import FerryStore

extension DownloadTransfer {
    /// What a checkpoint makes durable.
    enum Checkpoint: Sendable {
        /// What the kernel has by now: asked for by the sink in the midst of a fast body.
        case written
        /// All that was taken, the rest of a slab included: at the end, and from time to time.
        case taken
    }

    /// How often a slow body's progress is made durable.
    private static let checkpointInterval = Duration.seconds(2)

    /// Where a body's bytes go.
    struct BodyPlan: Sendable {
        /// How much of what came again is compared at most, in bytes.
        static let comparedBytes: Int64 = 1_024 * 1_024
        /// Bytes at the beginning of the body that are there already.
        ///
        /// They have to be the same: a part that begins earlier than asked proves more than its tag does.
        var known: Int64 = 0
        /// One past the body's last byte in the file; nil if only its end will tell.
        var expected: Int64?
    }

    /// What a body has brought.
    struct BodyEnd: Sendable {
        /// The partial with all of the body in it, durable, and what its trailers have told.
        let partial: PartialFile
        /// Digests of the whole file; none unless it was fetched from its beginning.
        let digests: [DigestAlgorithm: Checksum]
    }

    /// What comes is not what was there: the object is another one now.
    struct OverlapDiffers: Error {}

    /// Lets the body flow into the partial until it ends, with checkpoints.
    ///
    /// Whatever happens, all that was taken is durable and committed when this returns or throws, unless the
    /// disk itself refuses or a stop leaves no time. The first byte that is not there yet goes to the partial's
    /// durable end.
    ///
    /// - Throws: ``PartialChanged`` if the partial does not end as it did, besides all that ends an attempt.
    func receive(_ answer: Answer, into known: PartialFile, _ plan: BodyPlan) async throws -> BodyEnd {
        let exchange = answer.exchange
        var partial = known
        let (ticks, tick) = AsyncStream.makeStream(of: Checkpoint.self, bufferingPolicy: .bufferingNewest(1))
        let offset = partial.durable
        let compared = min(plan.known, BodyPlan.comparedBytes)
        let hasher: Hasher?
        let sink: DownloadSink
        do {
            hasher = try self.hasher(for: partial)
            sink = DownloadSink(
                writer: try await self.writer(for: partial, hasher, exchange),
                skip: plan.known - compared,
                overlap: try await self.lastBytes(compared, of: partial),
                limit: plan.expected,
                sizeLimit: self.request.sizeLimitBytes,
                running: self.running,
                checkpointWanted: { tick.yield(.written) }
            )
            try await self.save(partial)
        } catch {
            exchange.cancel()
            throw error
        }
        self.running.phase = .transferring
        self.running.done = offset
        self.running.durable = offset
        self.running.total = partial.remote.totalBytes
        exchange.receive(into: sink)
        let end: ExchangeEnd
        do {
            end = try await self.follow(exchange, sink, partial, ticks, tick)
        } catch {
            _ = await sink.flush()  // no slab may come into the file after the next attempt's bytes
            throw error
        }
        self.running.amendLastHop(end)
        if end.code == 0 {
            partial.add(DigestFields.expected(head: answer.head, trailers: end.trailers))
            partial.remote.awaitsDigest = nil
            try await self.save(partial)
        }
        _ = try await self.checkpoint(.taken, sink, partial)
        partial.prefix = sink.durable
        self.services.crash.reach(.bodyEnded)
        let isWhole = end.code == 0 && sink.failure == nil && sink.takenEnd == plan.expected ?? sink.takenEnd
        if !isWhole { try await self.settle(partial) }
        switch sink.failure {
        case .system(let error): throw error
        case .tooLong: throw TransferFailure(.badResponse("more bytes came than the head had promised"))
        case .tooLarge: throw TransferFailure(.tooLarge)
        case .differs: throw OverlapDiffers()
        case nil: break
        }
        try self.running.checkStop()
        // Neither the disk nor the memory has refused: libcurl says so of a packed body that it cannot unpack.
        if self.request.compressed, end.code == 23 || end.code == 27 {
            throw TransferFailure(
                .badResponse("the compressed body cannot be unpacked; without --compressed none is asked for")
            )
        }
        guard end.code == 0 else { throw end.failure(of: answer.address) }
        let taken = sink.takenEnd
        if let expected = plan.expected, taken != expected { throw TransferFailure(.shortBody) }
        return BodyEnd(partial: partial, digests: await hasher?.finish() ?? [:])
    }

    /// Records the date of a partial that is left alone for now, so that a later change of it is noticed.
    ///
    /// One that another program may have changed already is left without a date: it is read back.
    private func settle(_ partial: PartialFile) async throws {
        let file = partial.file
        let services = self.services
        let settled = try await self.services.disk.run { () -> Int64? in
            guard !services.isTooLateToSync else { return nil }
            try file.sync()  // the date as well: a power cut must not make it look changed
            let changed = try file.identity().changedNanoseconds
            return partial.isEdited ? nil : changed
        }
        guard let settled else { return }
        let row = partial.row(settled: settled)
        try await self.services.store.write { try $0.save(row) }
    }

    /// Commits what an answer has told before its bytes count, and takes back the date that ``settle(_:)`` has
    /// left before the first of them is written.
    private func save(_ partial: PartialFile) async throws {
        let row = partial.row()
        guard row != partial.record else { return }
        try await self.services.store.write { try $0.save(row) }
    }

    /// A hasher, if digests are expected and the body is the whole file; else the file is read when it is whole.
    private func hasher(for partial: PartialFile) throws -> Hasher? {
        let algorithms = DigestVerdict.algorithms(for: self.expectedDigests(of: partial.remote))
        guard partial.durable == 0, !algorithms.isEmpty else { return nil }
        // One that libcrypto lacks is told when the file is whole.
        return try? Hasher(algorithms, queue: self.services.hashing)
    }

    /// The last durable bytes of the partial.
    private func lastBytes(_ count: Int64, of partial: PartialFile) async throws -> [UInt8] {
        guard count > 0 else { return [] }
        return try await self.services.disk.run {
            var bytes = [UInt8](repeating: 0, count: Int(count))
            try bytes.withUnsafeMutableBytes { try partial.file.read(into: $0, at: partial.durable - count) }
            return bytes
        }
    }

    /// The writer of a body, with a place on the board if one is free.
    private func writer(
        for partial: PartialFile,
        _ hasher: Hasher?,
        _ exchange: Exchange
    ) async throws -> SegmentWriter {
        let prefix = try await self.services.disk.run {
            try PrefixHasher(continuing: partial.prefix, of: partial.file)
        }
        guard let prefix else { throw PartialChanged() }
        let key = ProgressBoard.Key(job: self.running.id, generation: partial.record.generation, start: 0)
        return SegmentWriter(
            file: partial.file,
            prefix: prefix,
            pool: self.services.slabs,
            queue: self.services.writing,
            slot: self.services.board?.begin(key, base: partial.durable),
            hasher: hasher,
            monotonic: self.services.time.monotonic,
            room: { exchange.resume() }
        )
    }

    /// Waits for the end of the body; checkpoints run meanwhile, whenever asked for and every two seconds.
    private func follow(
        _ exchange: Exchange,
        _ sink: DownloadSink,
        _ partial: PartialFile,
        _ ticks: AsyncStream<Checkpoint>,
        _ tick: AsyncStream<Checkpoint>.Continuation
    ) async throws -> ExchangeEnd {
        let time = self.services.time
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                while !Task.isCancelled {
                    do {
                        try await time.sleep(Self.checkpointInterval)
                    } catch {
                        return  // cancelled: the body has ended
                    }
                    tick.yield(.taken)
                }
            }
            group.addTask {
                for await kind in ticks {
                    do {
                        if try await self.checkpoint(kind, sink, partial) { exchange.resume() }
                        if sink.failure != nil { exchange.cancel() }
                    } catch {
                        exchange.cancel()  // nothing may flow that cannot be made durable
                        throw error
                    }
                }
            }
            let end = await exchange.end()
            tick.finish()
            group.cancelAll()
            // Surfaces the failure of a checkpoint, and waits for the one that may be running.
            for try await _ in group {}
            return end
        }
    }

    /// Makes what is written durable and commits its offset: write, sync, then commit.
    ///
    /// - Returns: Whether the body has to be resumed.
    private func checkpoint(
        _ kind: Checkpoint,
        _ sink: DownloadSink,
        _ partial: PartialFile
    ) async throws -> Bool {
        let before = sink.durable
        let file = partial.file
        let written = kind == .taken ? await sink.flush() : sink.written
        guard written.end > before.end else { return sink.setDurable(before) }
        self.services.crash.reach(.written)
        let services = self.services
        let isDurable = try await self.services.disk.run {
            // Looked at when the turn has come: others may have used up the time.
            guard !services.isTooLateToSync else { return false }
            do {
                try file.syncData()
                return true
            } catch {
                // The kernel has marked the pages clean: they would be read back as if they were on the disk.
                sink.syncFailed()
                throw error
            }
        }
        guard isDurable else { return false }  // the progress board tells the next start of it
        self.services.crash.reach(.synced)
        try await self.commit(written, of: partial)
        self.services.crash.reach(.checkpointed)
        return sink.setDurable(written)
    }

    /// Commits a durable offset with the hash of what lies before it, and what follows from progress: the counts
    /// of tries begin anew.
    func commit(_ prefix: PrefixHash, of partial: PartialFile) async throws {
        var grown = partial
        grown.prefix = prefix
        let row = grown.row()
        let durable = prefix.end
        let id = self.running.id
        let now = self.services.time.now()
        let generation = partial.record.generation
        let total = partial.remote.totalBytes
        let cleanups = try await self.services.store.write { transaction in
            try transaction.save(row)
            try transaction.save(
                SegmentRecord(job: id, generation: generation, start: 0, end: total, durable: durable)
            )
            try Cleanup.retireOvertaken(by: generation, durable: durable, of: id, in: transaction, at: now)
            guard var job = try transaction.job(id) else { return [CleanupRecord]() }
            job.bytesDurable = durable
            if durable > job.bestBytes {
                job.bestBytes = durable
                job.transientTries = 0
                job.doubtfulTries = 0
                job.renewals = 0
                job.progressAt = now
            }
            try transaction.save(job)
            return generation > 1 ? try transaction.cleanups().filter { $0.job == id } : []
        }
        for cleanup in cleanups where cleanup.kind == Cleanup.unlink {
            try await Cleanup.carryOut(cleanup, self.services)
        }
    }
}
