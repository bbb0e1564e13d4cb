import FerryControl
import FerryCore
import FerryFiles
import FerryStore
import FoundationEssentials
import Glibc

extension StateCheck {
    /// How old a spool file must be before it can be an orphan, in seconds: a new one may not be recorded yet.
    private static let spoolAge: Int64 = 3_600

    // MARK: Partials

    /// Compares the partials of jobs that are not final with what is on disk.
    mutating func checkPartials(_ audit: StoreAudit) throws {
        var count = 0
        for partial in try audit.partials() where self.isSettled(partial) {
            count += 1
            try self.check(partial)
        }
        self.add("partials", .ok, "\(count) looked at")
    }

    /// Whether nothing but a person changes the file just now.
    private func isSettled(_ partial: StoreAudit.Partial) -> Bool {
        // While a job finishes its file gets its name, and after a crash the next service looks.
        partial.file.inode != nil && partial.phase != .finishing
            && self.running?.contains(partial.file.job) != true
    }

    private mutating func check(_ partial: StoreAudit.Partial) throws {
        let file = partial.file
        let durable = partial.durable
        let path = "\(file.directory)/\(file.partialName)"
        let found: OpenFile.Identity?
        do throws(SystemError) {
            found = try Folder(file.directory).identity(of: file.partialName)
        } catch {
            let advice =
                error.errno == ENOENT
                ? "mount its disk or make it again; the job waits or fails until then" : nil
            self.add("partials", .problem, "job \(file.job): \(error.description)", advice: advice)
            return
        }
        guard let found, found.isRegular, found.isSameFile(inode: file.inode) else {
            guard durable > 0 else { return }
            self.add(
                "partials",
                .problem,
                "job \(file.job): \(path) is \(found == nil ? "missing" : "another file now")",
                advice:
                    "put it back in place by renaming, else the job begins anew and fetches \(durable) bytes again"
            )
            return
        }
        if found.size < durable {
            let folder = self.folder
            try self.add(
                "partials",
                "job \(file.job): \(path) has \(found.size) bytes, and \(durable) were recorded",
                repaired: "job \(file.job): the recorded offset was lowered to \(found.size) bytes",
                by: { try StoreRepair(directory: folder).lower(file, to: found.size) }
            )
        } else if let settled = file.settledNs, settled != found.changedNanoseconds {
            self.add(
                "partials",
                .note,
                "job \(file.job): \(path) was changed while the job stood still; the job reads it back, and begins anew if its bytes are others"
            )
        }
    }

    // MARK: Strays

    /// Looks for partials that no job works with, in the folders that the database knows.
    mutating func checkStrays(_ audit: StoreAudit) throws {
        let known = Set(try audit.partials().map { "\($0.file.directory)/\($0.file.partialName)" })
        let doomed = Set(
            try audit.cleanups().compactMap { cleanup in
                (try? JSONDecoder().decode(Doomed.self, from: Data(cleanup.detail.utf8)))?.path
            }
        )
        for directory in try audit.folders() {
            // A folder that cannot be read is told where a job needs it.
            let names = try? Folder.names(in: directory) { FileName.job(ofPartial: $0) != nil }
            for name in names ?? [] where !known.contains("\(directory)/\(name)") {
                if doomed.contains("\(directory)/\(name)") {
                    self.add(
                        "clean-ups",
                        .note,
                        "\(directory)/\(name) is not needed any more; the next service removes it"
                    )
                } else {
                    try self.check(stray: name, in: directory, audit)
                }
            }
        }
    }

    /// What the detail of a clean-up names.
    private struct Doomed: Decodable {
        let directory: String
        let name: String
        var path: String { "\(self.directory)/\(self.name)" }
    }

    private mutating func check(stray name: String, in directory: String, _ audit: StoreAudit) throws {
        let path = "\(directory)/\(name)"
        let owner = try FileName.job(ofPartial: name).flatMap { id in
            try audit.partials(of: id).first { $0.file.directory == directory && $0.file.partialName == name }
        }
        switch owner?.state {
        case nil:
            self.add(
                "partials",
                .note,
                "\(path) belongs to no job of this queue",
                advice: "if no other queue works with it, remove it"
            )
        case .cancelled:
            self.add(
                "partials",
                .note,
                "\(path) was kept when its job was cancelled",
                advice: "`ferry resume-data import` takes it up again; else remove it"
            )
        case .completed:
            guard let file = owner?.file, try Self.isSecondName(name, of: file) else {
                self.add("partials", .note, "\(path) is left of a completed job", advice: "remove it")
                return
            }
            try self.add(
                "partials",
                "\(path) is a second name of the finished file \(file.name)",
                repaired: "\(path), a second name of the finished file \(file.name), was removed",
                by: {
                    let folder = try Folder(directory)
                    try folder.remove(name)
                    try folder.sync()
                }
            )
        case .queued, .running, .waiting, .paused, .failed:
            break  // it was made while we looked
        }
    }

    /// Whether partial and finished file are the recorded one, so that nothing is lost with one of the names.
    private static func isSecondName(_ name: String, of file: FileRecord) throws -> Bool {
        let folder = try Folder(file.directory)
        guard let inode = file.inode, let partial = try folder.identity(of: name),
            let final = try folder.identity(of: file.name)
        else { return false }
        return partial.isRegular && partial.inode == inode && final.inode == inode
            && partial.device == final.device
    }

    // MARK: Spool files

    /// Looks for bodies of uploads that no job needs.
    mutating func checkSpools(_ audit: StoreAudit) throws {
        let spool = "\(self.folder)/spool"
        guard let names = try? Folder.names(in: spool), !names.isEmpty else { return }
        let needed = Set(try audit.spools().map { $0.split(separator: "/").last.map(String.init) ?? $0 })
        let folder = try Folder(spool)
        for name in names where !needed.contains(name) {
            guard let found = try folder.identity(of: name), found.isRegular,
                self.now.milliseconds / 1_000 - found.modifiedNanoseconds / 1_000_000_000 > Self.spoolAge
            else { continue }
            try self.add(
                "spool",
                "\(spool)/\(name) (\(found.size) bytes) belongs to no upload",
                repaired: "\(spool)/\(name), which belonged to no upload, was removed",
                by: { try folder.remove(name) }
            )
        }
    }
}
