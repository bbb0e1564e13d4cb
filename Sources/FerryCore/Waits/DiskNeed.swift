/// How much room a job still needs on a file system, and whether it has it.
public struct DiskNeed: Hashable, Sendable {
    /// What is asked for where nobody knows how much will come, in bytes.
    public static let unknown: Int64 = 16 << 20

    /// Bytes that are still to be allocated.
    public let bytes: Int64

    /// The need of a file of which some is there already.
    ///
    /// What the file system has given to it is not needed again: a reserved file needs nothing, however much of it
    /// is still to be filled.
    ///
    /// - Parameters:
    ///   - total: The whole size; nil if nobody knows it.
    ///   - allocated: The bytes of its blocks (st_blocks of stat(2)).
    public init(total: Int64?, allocated: Int64) {
        self.bytes = total.map { max(0, $0 - allocated) } ?? Self.unknown
    }

    /// Whether there is enough; a file system that says nothing has enough.
    public func fits(_ space: FreeSpace?) -> Bool {
        space.map { $0.bytes >= self.bytes && $0.bytes > 0 } ?? true
    }

    /// What a job that waits for room says.
    ///
    /// - Parameter space: What there is where the file is to be.
    /// - Returns: `/data: 1.2 GiB needed, 300.0 MiB free`; nil if there seems to be enough, and only the error tells
    ///   what is wrong: a quota, or room that others use up.
    public func message(_ space: FreeSpace?) -> String? {
        guard let space, !self.fits(space) else { return nil }
        return FileName.display(
            "no space left on \(space.place): \(ByteCount(bytes: self.bytes).text) needed,"
                + " \(ByteCount(bytes: space.bytes).text) free"
        )
    }

    /// What a job says that may have no more room although there is some (EDQUOT).
    ///
    /// - Returns: `disk quota used up on /home: 1.2 GiB needed`.
    public func quotaMessage(_ space: FreeSpace?) -> String {
        let place = space.map { " on \($0.place)" } ?? ""
        return FileName.display("disk quota used up\(place): \(ByteCount(bytes: self.bytes).text) needed")
    }
}

/// What is free on a file system.
public struct FreeSpace: Hashable, Sendable {
    /// Where it is mounted.
    public let place: String
    /// Which one it is: st_dev.
    public let device: UInt64
    /// Bytes that a user without privileges can have.
    public let bytes: Int64

    /// Makes a value.
    public init(place: String, device: UInt64, bytes: Int64) {
        self.place = place
        self.device = device
        self.bytes = bytes
    }
}

/// Which of the jobs that wait for room may go on.
public enum DiskPlan {
    /// How often the room is looked at.
    public static let interval = RetryPlan.diskInterval
    /// The longest pause of a job for which there seems to be room, but is not.
    public static let longest = Duration.seconds(300)

    /// A job that waits.
    public struct Waiter: Sendable {
        /// The job.
        public let id: JobID
        /// What it needs.
        public let need: DiskNeed
        /// What there is.
        public let space: FreeSpace?

        /// Makes a value.
        public init(id: JobID, need: DiskNeed, space: FreeSpace?) {
            self.id = id
            self.need = need
            self.space = space
        }
    }

    /// The jobs that fit together into what is free; each file system is shared out once, in the given order.
    public static func ready(_ waiters: [Waiter]) -> [JobID] {
        var left: [UInt64: Int64] = [:]
        return waiters.filter { waiter in
            guard let space = waiter.space else { return true }
            let free = left[space.device] ?? space.bytes
            guard free > 0, free >= waiter.need.bytes else { return false }
            left[space.device] = free - waiter.need.bytes
            return true
        }.map(\.id)
    }

    /// How long a job waits although there seems to be room, when that was so some times before.
    public static func pause(after tries: Int) -> Duration {
        var pause = self.interval
        for _ in 0..<max(0, min(tries, 16)) where pause < self.longest { pause = pause * 2 }
        return min(pause, self.longest)
    }
}
