extension ResumableUploadPlan {
    /// Believes the server's offset and sends what follows; after all bytes an empty append says that it was all.
    mutating func goOn(at offset: Int64) -> UploadStep {
        if offset > self.memory.offset {
            self.stalls = 0
        } else if self.call != .head {
            self.stalls += 1
        } else if self.isResumed, let chunk = self.memory.chunk {
            self.memory.chunk = UploadChunk.smaller(than: chunk)  // nothing of the last piece is there
            self.isProbing = true
        }
        self.isResumed = false
        self.memory.offset = offset
        guard self.stalls < TusPlan.stallLimit else { return self.stalled }
        var chunk = self.isProbing ? UploadChunk.probe : self.memory.chunk ?? UploadChunk.first
        chunk = max(chunk, self.memory.appendFloor ?? 0)
        chunk = min(chunk, max(1, self.memory.appendLimit ?? .max))
        let range = offset..<offset + min(self.facts.size - offset, chunk)
        self.call = .patch(range)
        return .call(UploadCall("PATCH", .upload, self.appendFields(range), body: range))
    }

    private var stalled: UploadStep {
        .failed(.badResponse("the server takes bytes again and again and has no more of them"))
    }

    mutating func takeAppended(_ answer: UploadAnswer, _ range: Range<Int64>) -> UploadStep {
        self.learn(answer.head)
        let wasProbing = self.isProbing
        self.isProbing = false
        let isLast = range.upperBound == self.facts.size
        let isComplete = self.version.tellsCompleteness ? self.version.isComplete(answer.head) : nil
        if isComplete == true, isLast, !answer.isSuccess {
            // The bytes are all there, and what was to be done with them failed: sending cannot help.
            let words = answer.words.map { ": \($0)" } ?? ""
            return self.refused(
                .server,
                "\(self.facts.host) has the whole upload and answered \(answer.head.status)\(words)"
            )
        }
        if let excess = self.excess(answer.head) { return excess }
        switch answer.head.status {
        case 200..<300:
            return self.takeSuccess(answer, range, isComplete: isComplete, wasProbing: wasProbing)
        case 409:
            self.stalls += 1
            guard self.stalls < TusPlan.stallLimit else {
                return .failed(.busy("\(self.facts.host) does not agree on where the upload goes on"))
            }
            return self.askOffset()
        case 400 where answer.text.contains("completed-upload"):
            return self.askOffset()
        case 404, 410:
            return self.gone()
        case 413:
            return self.makeSmaller(range)
        case 423:
            return .failed(.busy("the upload on \(self.facts.host) is still held by an earlier connection"))
        default:
            return answer.failure
        }
    }

    private mutating func takeSuccess(
        _ answer: UploadAnswer,
        _ range: Range<Int64>,
        isComplete: Bool?,
        wasProbing: Bool
    ) -> UploadStep {
        let isLast = range.upperBound == self.facts.size
        let offset = Self.offset(answer.head)
        if isLast, answer.sentAll, isComplete != false, offset ?? self.facts.size >= self.facts.size {
            self.memory.offset = self.facts.size
            return .done
        }
        if !isLast, !wasProbing {
            self.memory.chunk = UploadChunk.next(
                after: self.memory.chunk ?? UploadChunk.first,
                sent: range.upperBound - range.lowerBound,
                elapsed: answer.elapsed
            )
        }
        if !isLast, answer.sentAll || offset != nil { return self.goOn(at: offset ?? range.upperBound) }
        self.stalls += 1
        return self.stalls < TusPlan.stallLimit ? self.askOffset() : self.stalled
    }

    /// The server, or a proxy before it, wants smaller pieces: what it has announced, else half.
    private mutating func makeSmaller(_ range: Range<Int64>) -> UploadStep {
        let sent = range.upperBound - range.lowerBound
        if let limit = self.memory.appendLimit, limit > 0, limit < sent { return self.askOffset() }
        let half = min(sent / 2, 64 << 20)
        guard half >= max(1, self.memory.appendFloor ?? TusPlan.smallestLimit) else {
            return self.refused(
                .tooLarge,
                "\(self.facts.host) refuses even small pieces of the file as too large"
            )
        }
        self.memory.appendLimit = half
        return self.askOffset()
    }
}
