import Testing

@testable import FerryControl

@Suite struct LineBufferTests {
    private func append(_ text: String, to buffer: inout LineBuffer) {
        Array(text.utf8).withUnsafeBytes { buffer.append($0) }
    }

    private func line(_ text: String) -> LineBuffer.Next { .line(Array(text.utf8)) }

    @Test func `half lines are kept, several lines come one by one, empty ones are passed over`() {
        var buffer = LineBuffer(limit: nil)
        #expect(buffer.next() == .none)
        append("ab", to: &buffer)
        #expect(buffer.next() == .none)
        append("c\n\nd\ne", to: &buffer)
        #expect(buffer.hasNext)
        #expect(buffer.next() == line("abc"))
        #expect(buffer.next() == line("d"))
        #expect(buffer.next() == .none)
        #expect(!buffer.hasNext)
        append("\n", to: &buffer)
        #expect(buffer.next() == line("e"))
        append("\n\n", to: &buffer)
        #expect(buffer.next() == .none)
    }

    @Test func `a line of the limit passes, a longer one does not, whole or half`() {
        var buffer = LineBuffer(limit: 3)
        append("abc\n", to: &buffer)
        #expect(buffer.next() == line("abc"))
        append("abc", to: &buffer)
        #expect(!buffer.hasNext)
        append("d", to: &buffer)
        #expect(buffer.next() == .overLimit)
        append("\n", to: &buffer)
        #expect(buffer.next() == .overLimit)
        var whole = LineBuffer(limit: 3)
        append("ab\nabcd\n", to: &whole)
        #expect(whole.next() == line("ab"))
        #expect(whole.next() == .overLimit)
    }

    @Test func `megabytes of lines pass through`() {
        var buffer = LineBuffer(limit: nil)
        let text = String(repeating: "x", count: 1_000) + "\n"
        var count = 0
        for _ in 0..<300 {
            append(String(repeating: text, count: 10) + "half", to: &buffer)
            append(" line\n", to: &buffer)
            while case .line(let bytes) = buffer.next() { count += bytes.count }
        }
        #expect(count == 300 * (10_000 + 9))
    }
}

@Suite struct OutboxTests {
    @Test func `lines come out in order and once`() {
        var box = Outbox(limit: 100, overrun: [0])
        #expect(box.isEmpty)
        box.add([1], .answer)
        box.add([2], .event)
        box.add([3], .progress)
        #expect(!box.isEmpty)
        #expect(box.take() == [1, 2, 3])
        #expect(box.take() == [])
        box.add([4], .progress)
        #expect(box.take() == [4])
    }

    @Test func `of progress only the latest is kept, in its place`() {
        var box = Outbox(limit: 100, overrun: [0])
        box.add([1], .progress)
        box.add([2], .event)
        box.add([3], .progress)
        box.add([4], .progress)
        box.add([5], .event)
        #expect(box.take() == [2, 4, 5])
    }

    @Test func `events beyond the limit give way to one line, answers and progress do not`() {
        var box = Outbox(limit: 10, overrun: [0])
        box.add([UInt8](repeating: 1, count: 50), .answer)
        for _ in 0..<1_000 { box.add([UInt8](repeating: 1, count: 9), .progress) }
        box.add([UInt8](repeating: 2, count: 10), .event)
        #expect(!box.isOverrun)
        #expect(box.take().count == 69)
        box.add([5], .answer)
        box.add([UInt8](repeating: 2, count: 10), .event)
        box.add([3], .progress)
        box.add([2], .event)
        #expect(box.isOverrun)
        for _ in 0..<1_000 {
            box.add([2], .event)
            box.add([3], .progress)
        }
        box.add([6], .answer)
        #expect(box.take() == [5, 0, 6])
        box.add([2], .event)
        #expect(box.take() == [2])
    }
}
