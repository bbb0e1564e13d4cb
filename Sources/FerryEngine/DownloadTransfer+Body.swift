import FerryCore
import FerryFiles
import FerryHTTP
import FerryStore

extension DownloadTransfer {
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
        let (ticks, tick) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let sink = DownloadSink(
            file: partial.file,
            offset: offset,
            skip: skip,
            limit: expected,
            running: self.running,
            time: self.services.time,
            checkpointWanted: { tick.yield() }
        )
        self.running.phase = .transferring
        self.running.done = offset
        self.running.durable = offset
        self.running.total = partial.remote.totalBytes
        exchange.receive(into: sink)
        let end = try await self.follow(exchange, sink, partial, ticks, tick)
        self.running.amendLastHop(end)
        _ = try await self.checkpoint(sink, partial)
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

    /// Waits for the end of the body; checkpoints run meanwhile, whenever asked for and every two seconds.
    private func follow(
        _ exchange: Exchange,
        _ sink: DownloadSink,
        _ partial: PartialFile,
        _ ticks: AsyncStream<Void>,
        _ tick: AsyncStream<Void>.Continuation
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
                    tick.yield()
                }
            }
            group.addTask {
                for await _ in ticks {
                    do {
                        if try await self.checkpoint(sink, partial) { exchange.resume() }
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
    private func checkpoint(_ sink: DownloadSink, _ partial: PartialFile) async throws -> Bool {
        let before = self.running.durable
        let file = partial.file
        let written = try await self.services.disk.run {
            let written = sink.flush()
            if written > before {
                self.services.crash.reach(.written)
                try file.syncData()
            }
            return written
        }
        guard written > before else { return sink.setDurable(before) }
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
