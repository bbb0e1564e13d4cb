import Synchronization

/// Memory on its way from the network to a file; goes back to its pool when the last reference goes.
///
/// Whoever fills it does so before handing it on; after that it is only read.
public final class Slab: @unchecked Sendable {
    // Safe to share: it is written by one owner, before others get it, and read-only after.

    /// The bytes, ``SlabPool/slabSize`` of them, at a page's border.
    public let memory: UnsafeMutableRawBufferPointer
    private let pool: SlabPool

    fileprivate init(memory: UnsafeMutableRawBufferPointer, pool: SlabPool) {
        self.memory = memory
        self.pool = pool
    }

    deinit {
        self.pool.giveBack(self.memory)
    }
}

/// A fixed number of slabs for all transfers: what bounds memory, whatever disks and networks do.
public final class SlabPool: Sendable {
    /// The size of a slab, in bytes: a multiple of the page size and of any file system's block.
    public static let slabSize = 256 * 1_024

    private struct Free: @unchecked Sendable {
        // Each pointer is used by one slab at a time; the mutex guards the list.
        var free: [UnsafeMutableRawBufferPointer] = []
        var made = 0
    }

    private let limit: Int
    private let state = Mutex(Free())

    /// Makes a pool of at most `limit` slabs; memory is taken when it is first needed.
    public init(limit: Int) {
        self.limit = limit
    }

    deinit {
        self.state.withLock { state in
            for memory in state.free { memory.deallocate() }
        }
    }

    /// A slab, or nil if all are in use.
    public func take() -> Slab? {
        let memory: UnsafeMutableRawBufferPointer? = self.state.withLock { state in
            if let memory = state.free.popLast() { return memory }
            guard state.made < self.limit else { return nil }
            state.made += 1
            return .allocate(byteCount: Self.slabSize, alignment: 4_096)
        }
        return memory.map { Slab(memory: $0, pool: self) }
    }

    fileprivate func giveBack(_ memory: UnsafeMutableRawBufferPointer) {
        self.state.withLock { $0.free.append(memory) }
    }
}
