/// A barrier that a test opens when it is time; it stays open.
public final class Gate: Sendable {
    private let isOpenNow = Watched(false)

    /// Makes a closed gate.
    public init() {}

    /// Whether it was opened.
    public var isOpen: Bool {
        self.isOpenNow.value
    }

    /// Opens the gate for all who wait and all who come; repeating it does nothing.
    public func open() {
        self.isOpenNow.update { $0 = true }
    }

    /// Waits until the gate is open.
    public func wait(timeout: Duration = .seconds(120)) async throws {
        try await self.isOpenNow.wait(for: "a gate", timeout: timeout) { $0 ? () : nil }
    }

    /// Blocks the calling thread until the gate is open; false when the time is over.
    @discardableResult
    public func waitBlocking(timeout: Duration) -> Bool {
        self.isOpenNow.waitBlocking(timeout: timeout) { $0 ? () : nil } != nil
    }

    /// Runs an action once the gate is open, at once if it is.
    func whenOpen(_ action: @escaping @Sendable () -> Void) {
        self.isOpenNow.whenever { $0 ? action : nil }
    }
}
