import FerryCore
import FerryFiles
import Glibc

extension Engine {
    /// Looks at the folder that a file is to go to, before anything is queued.
    ///
    /// In a queue of one's own the command has looked already, with the rights of its caller. The machine's queue
    /// looks with its own: only in folders that are allowed, and it makes those that are missing there itself.
    func checkPlace(_ directory: String, of request: JobRequest) throws(FerryError) {
        let calls = self.services.calls
        try self.checkIsNotState(directory)
        do throws(SystemError) {
            if let allowed = calls.allowedFolders, request.createsDirectory == true {
                try allowed.make(directory, mode: 0o777 & ~request.umask)
            }
            let folder = try Folder(directory, calls: calls)
            if calls.allowedFolders != nil { try folder.checkWritable() }
        } catch {
            throw FerryError(.localIO, error.description + Self.hint(error, calls), exitStatus: .failed)
        }
    }

    /// Refuses the queue's own state folder: a file called `jobs.db` would be the end of the queue, and a server may
    /// choose the name.
    func checkIsNotState(_ directory: String) throws(FerryError) {
        func identity(_ path: String) -> OpenFile.Identity? {
            try? Folder(path, calls: .real).identity(of: ".")
        }
        guard let board = self.boardPath, let state = identity(DownloadTransfer.split(board).directory),
            let wanted = identity(directory), state.inode == wanted.inode, state.device == wanted.device
        else { return }
        throw FerryError(
            .localIO,
            "the folder '\(directory)' cannot be used: the queue keeps its state in it; -d DIR names another",
            exitStatus: .failed
        )
    }

    /// What helps, on a line of its own.
    private static func hint(_ error: SystemError, _ calls: FileCalls) -> String {
        guard calls.allowedFolders != nil else { return "" }
        switch error.errno {
        case EPERM: return "\nas root, 'ferry service install --system --allow-dir DIR' allows a folder"
        case EACCES: return "\nthe machine's queue writes as user ferry, who needs the right to do so"
        case EROFS: return "\n'ferry service install --system' as root brings the service's unit up to date"
        default: return ""
        }
    }
}
