public import FerryCore
import FerryFiles
import FerryStore

extension Error {
    /// The error as a command is told it: one of Ferry's own as it is, a database's or system call's with its
    /// exit status.
    public var asFerryError: FerryError {
        switch self {
        case let error as FerryError: error
        case let error as StoreError: error.ferryError
        case let error as SystemError: FerryError(.localIO, error.description, exitStatus: .failed)
        default: FerryError(.localIO, "\(self)", exitStatus: .failed)
        }
    }
}
