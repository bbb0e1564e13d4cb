public import Dispatch
public import FerryCore

/// Digests of a body as it passes, computed on a thread of its own while the writer's thread goes on.
///
/// The bytes come in order, from one thread at a time: the queue's, or another while nothing is on the queue.
public final class Hasher: @unchecked Sendable {
    // Used by one thread at a time, as said.

    /// The thread.
    let queue: DispatchQueue
    private let digester: Digester
    private var failure: Digester.Failure?

    /// Starts digests.
    ///
    /// - Throws: ``Digester/Failure`` if libcrypto lacks one.
    public init(_ algorithms: Set<DigestAlgorithm>, queue: DispatchQueue) throws(Digester.Failure) {
        self.digester = try Digester(algorithms)
        self.queue = queue
    }

    func update(_ bytes: UnsafeRawBufferPointer) {
        guard self.failure == nil else { return }
        do throws(Digester.Failure) {
            try self.digester.update(bytes)
        } catch {
            self.failure = error
        }
    }

    /// Waits until all bytes are hashed and gives the digests; none if one failed.
    public func finish() async -> [DigestAlgorithm: Checksum] {
        await withCheckedContinuation { continuation in
            self.queue.async {
                let digests = self.failure == nil ? try? self.digester.finish() : nil
                continuation.resume(returning: digests ?? [:])
            }
        }
    }
}
