import FerryCore
import FerryFiles
import FerryStore
import Glibc

/// How long a job waits for the machine.
enum MachineWait: Sendable {
    /// So long, then it looks again.
    case after(Duration)
    /// Until there is room on its disk, which is watched.
    case room
}

/// Looks into failures: whether the machine has no network, and how much room a disk lacks.
struct MachineExamination: Sendable {
    let services: TransferServices

    /// Gives the end of an attempt with what was found out about it.
    func examine(_ end: AttemptEnd, of running: RunningJob) async -> AttemptEnd {
        guard case .failed(let failure) = end else { return end }
        return .failed(await self.examine(failure, of: running))
    }

    private func examine(_ failure: TransferFailure, of running: RunningJob) async -> TransferFailure {
        let services = self.services
        if let lack = await services.waits.lack(
            behind: failure,
            services.machine,
            now: services.time.monotonic
        ) {
            let cause = TransferCause.network(lack)
            let message = RetryPlan.message(cause, host: failure.target?.host ?? running.host)
            var examined = TransferFailure(cause, message: message)
            examined.wait = .after(services.waits.failed(running.host, at: services.time.monotonic()))
            return examined
        }
        var examined = failure
        guard case .local(let code, _) = failure.cause, code == ENOSPC || code == EDQUOT else {
            services.waits.forget(running.id)
            return failure
        }
        let room = try? await DiskRoom.of(running.id, services)
        if code == ENOSPC, let room, !room.need.fits(room.space) {
            services.waits.forget(running.id)
            examined.message = room.need.message(room.space)
            examined.wait = .room
        } else {
            // The kernel says that there is no room, and nothing else does: a quota, or others use it up.
            if code == EDQUOT, let room { examined.message = room.need.quotaMessage(room.space) }
            examined.wait = .after(services.waits.refused(running.id, durable: running.durable))
        }
        return examined
    }
}

/// The room that a job needs, and what there is.
struct DiskRoom: Sendable {
    let need: DiskNeed
    let space: FreeSpace?

    /// Where a job writes, and how much will come.
    private struct Place: Sendable {
        /// What is asked for room: a file or folder, possibly one that is not there yet.
        let path: String
        /// The file that has some of it already.
        let partial: String?
        let total: Int64?
    }

    /// Looks at the rows of a job and at its file system.
    static func of(_ id: JobID, _ services: TransferServices) async throws -> DiskRoom? {
        let spool = services.spool
        let place = try await services.store.read { try Self.place(of: id, $0, spool: spool) }
        guard let place else { return nil }
        let calls = services.calls
        return try await services.disk.run {
            let allocated = place.partial.map { OpenFile.Identity.allocated($0) } ?? 0
            let need = DiskNeed(total: place.total, allocated: allocated)
            return DiskRoom(need: need, space: calls.freeSpace(place.path))
        }
    }

    private static func place(of id: JobID, _ reader: Reader, spool: String?) throws -> Place? {
        guard let job = try reader.job(id), let request = try reader.request(id) else { return nil }
        guard let order = request.upload else {
            let file = try reader.file(id)
            let planned = request.output.map { DownloadTransfer.split($0).directory } ?? request.directory
            let folder = file?.directory ?? planned
            let partial = file?.inode == nil ? nil : file.map { "\(folder)/\($0.partialName)" }
            return Place(path: folder, partial: partial, total: job.bytesTotal)
        }
        let upload = try reader.upload(id)
        if case .form = order.body, upload?.source == nil, let spool {
            let parts = [SourceIdentity](json: upload?.parts)
            return Place(path: spool, partial: nil, total: parts.reduce(0) { $0 + $1.size })
        }
        // Only the server's answer is written.
        let path = order.responsePath ?? spool ?? "/"
        return Place(path: path, partial: nil, total: Int64(KeptAnswer.fileLimit))
    }
}
