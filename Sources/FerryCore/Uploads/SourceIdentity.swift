/// What tells whether the file that an upload sends is still the one that was accepted.
///
/// Size and date change with the content, inode with a replacement; the change time does so with a mere chmod or
/// rename as well, and the device's number with each mount, so neither is compared.
public struct SourceIdentity: Hashable, Sendable, Codable {
    /// The path, absolute.
    public var path: String
    /// st_dev.
    public var device: Int64
    /// st_ino.
    public var inode: Int64
    /// st_size, in bytes.
    public var size: Int64
    /// st_mtim in nanoseconds since the epoch.
    public var modifiedNanoseconds: Int64

    /// Makes an identity.
    public init(path: String, device: Int64, inode: Int64, size: Int64, modifiedNanoseconds: Int64) {
        self.path = path
        self.device = device
        self.inode = inode
        self.size = size
        self.modifiedNanoseconds = modifiedNanoseconds
    }

    /// Says what has happened to the file since; nil if it is the same.
    public func change(to now: SourceIdentity) -> String? {
        if now.size < self.size { return "\(self.path) is shorter than when its upload was accepted" }
        if now.size > self.size { return "\(self.path) is longer than when its upload was accepted" }
        if now.inode != self.inode { return "\(self.path) was replaced since its upload was accepted" }
        if now.modifiedNanoseconds != self.modifiedNanoseconds {
            return "\(self.path) was changed since its upload was accepted"
        }
        return nil
    }
}
