extension FileName {
    /// The job in a partial's name; nil for a name that ``partial(name:job:generation:)`` never gives.
    public static func job(ofPartial name: String) -> JobID? {
        guard name.hasPrefix("."), let mark = name.range(ofLast: ".ferry-part") else { return nil }
        let ending = name[mark.upperBound...]
        if !ending.isEmpty {
            guard ending.hasPrefix("-"), let generation = Int(ending.dropFirst()), generation >= 2,
                ending == "-\(generation)"
            else { return nil }
        }
        let beginning = name[..<mark.lowerBound]
        guard let dot = beginning.lastIndex(of: "."), dot > name.startIndex else { return nil }
        return JobID(String(beginning[beginning.index(after: dot)...]))
    }
}

extension String {
    fileprivate func range(ofLast part: String) -> Range<String.Index>? {
        let (text, wanted) = (self.utf8, part.utf8)
        guard text.count >= wanted.count else { return nil }
        var start = text.index(text.endIndex, offsetBy: -wanted.count)
        while true {
            let end = text.index(start, offsetBy: wanted.count)
            if text[start..<end].elementsEqual(wanted) { return start..<end }
            guard start > text.startIndex else { return nil }
            start = text.index(before: start)
        }
    }
}
