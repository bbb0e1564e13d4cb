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

    /// Lets the body flow into the partial until it ends, with checkpoints.
    ///
    /// Whatever happens, all that was taken is durable and committed when this returns or throws, unless the
    /// disk itself refuses.
    ///
    /// The body's first byte after `skip` goes to `offset`. `expected` is one past its last byte in the file,
    /// nil if only its end will tell. The result is one past the last byte that came.
    func receive(
        _ exchange: Exchange,
        into partial: PartialFile,
        from offset: Int64,
        skip: Int64,
        expected: Int64?
    ) async throws -> Int64 {
        let (ticks, tick) = AsyncStream.makeStream(of: Checkpoint.self, bufferingPolicy: .bufferingNewest(1))
        let sink = DownloadSink(
            writer: self.writer(for: partial, offset: offset, exchange),
            skip: skip,
            limit: expected,
            running: self.running,
            checkpointWanted: { tick.yield(.written) }
        )
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
        _ = try await self.checkpoint(.taken, sink, partial)
        self.services.crash.reach(.bodyEnded)
        switch sink.failure {
        case .system(let error): throw error
        case .tooLong: throw TransferFailure(.badResponse("more bytes than the head had promised"))
        case nil: break
        }
        try self.running.checkStop()
        guard end.code == 0 else { throw self.failure(end) }
        let taken = sink.takenEnd
        if let expected, taken != expected { throw TransferFailure(.shortBody) }
        return taken
    }

    /// The writer of a body, with a place on the board if one is free.
    private func writer(for partial: PartialFile, offset: Int64, _ exchange: Exchange) -> SegmentWriter {
        let key = ProgressBoard.Key(job: self.running.id, generation: partial.record.generation, start: 0)
        return SegmentWriter(
            file: partial.file,
            offset: offset,
            pool: self.services.slabs,
            queue: self.services.writing,
            slot: self.services.board?.begin(key, base: offset),
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
        let before = self.running.durable
        let file = partial.file
        let written = kind == .taken ? await sink.flush() : sink.writtenEnd
        guard written > before else { return sink.setDurable(before) }
        self.services.crash.reach(.written)
        try await self.services.disk.run { try file.syncData() }
        self.services.crash.reach(.synced)
        try await self.commit(durable: written, of: partial)
        self.services.crash.reach(.checkpointed)
        return sink.setDurable(written)
    }

    /// Commits a durable offset, and what follows from progress: the counts of tries begin anew.
    func commit(durable: Int64, of partial: PartialFile) async throws {
        let id = self.running.id
        let now = self.services.time.now()
        let generation = partial.record.generation
        let total = partial.remote.totalBytes
        try await self.services.store.write { transaction in
            try transaction.save(
                SegmentRecord(job: id, generation: generation, start: 0, end: total, durable: durable)
            )
            guard var job = try transaction.job(id) else { return }
            job.bytesDurable = durable
            if durable > job.bestBytes {
                job.bestBytes = durable
                job.transientTries = 0
                job.doubtfulTries = 0
                job.progressAt = now
            }
            try transaction.save(job)
        }
    }
}
