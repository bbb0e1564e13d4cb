import FerryCore

/// How much of the places and of the starts goes to hosts that have failed and not answered since.
///
/// While others wait for a place, suspects start one job to thirty-two of others, or one a second where little starts,
/// and keep an eighth of the places: what only fails costs the others a few hundredths, however many hosts it is. The
/// rest they may have when nobody else wants it.
struct SuspectLane {
    /// Starts of others for one of a suspect.
    static let ratio = 32
    /// The time after which one may start all the same, with as many places as there are by default; with fewer it is
    /// longer, since one of them is more.
    static let interval = Duration.seconds(1)
    private static let usualPlaces = 16

    private var others = 0
    private var last: Timestamp?

    /// The places that suspects may keep of so many; `isWanted`: others wait for them.
    ///
    /// They may try one for a short time even where this is none. A quarter always stays free for what comes next.
    static func share(of places: Int, isWanted: Bool) -> Int {
        isWanted ? places / 8 : places - (places + 3) / 4
    }

    /// Whether a suspect goes first, of two that are equally important.
    func isDue(at now: Timestamp, places: Int) -> Bool {
        guard let last, last <= now else { return true }  // a clock that was set back tells nothing
        let interval = max(Self.interval, Self.interval * Self.usualPlaces / max(1, places))
        return self.others >= Self.ratio || now - last >= interval
    }

    /// Takes up that a job of another host starts.
    mutating func otherStarted() { self.others += 1 }

    /// Takes up that a job of a suspect starts, or that one has just held a place in vain.
    mutating func suspectStarted(at now: Timestamp) {
        self.others = 0
        self.last = now
    }
}
