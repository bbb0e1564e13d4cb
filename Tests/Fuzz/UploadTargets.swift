/// The upload protocols, against servers that answer anything.
let uploadTargets: [Target] = [
    Target(name: "tus-plan", run: tusPlan),
    Target(name: "resumable-upload-plan", run: resumableUploadPlan),
]

@Sendable private func tusPlan(_ input: Input) {
    drive(input) { TusPlan(facts: $0, memory: $1) }
}

@Sendable private func resumableUploadPlan(_ input: Input) {
    drive(input) { ResumableUploadPlan(facts: $0, memory: $1) }
}

/// The source's size, an empty line, then answers with empty lines between them.
///
/// An answer begins with its status and letters: `l` it has a Location, `o` one that differs, `p` not all of the body
/// had left, `x` none came.
private func drive<Plan: UploadPlan>(_ input: Input, _ make: (UploadFacts, UploadMemory) -> Plan) {
    let blocks = input.lines.split(separator: [], omittingEmptySubsequences: true)
    let size = blocks.first?.first.flatMap(ASCII.number) ?? 0
    let facts = UploadFacts(size: size, fileName: "a.bin", contentType: "text/plain", host: "h.example")
    var plan = make(facts, UploadMemory())
    var step = plan.begin()
    check(step, of: plan, size)
    for block in blocks.dropFirst() {
        let words = (block.first ?? []).split(separator: 32, maxSplits: 1).map(Array.init)
        let flags = words.dropFirst().first ?? []
        func has(_ letter: Unicode.Scalar) -> Bool { flags.contains(UInt8(ascii: letter)) }
        let answer = head([words.first ?? []] + block.dropFirst())
        let location = has("l") ? "https://h.example/1" : has("o") ? "https://h.example/2" : nil
        guard case .call = step else { return }
        if (100..<200).contains(answer.status) {
            guard plan.take(interim: answer, location: location) else { return }
            check(plan.memory.offset <= size, "\(plan.memory.offset) of \(size) bytes")
            continue
        }
        if has("x") {
            plan.lost()
            plan = make(facts, plan.memory)
            step = plan.begin()
        } else {
            step = plan.take(UploadAnswer(head: answer, location: location, sentAll: !has("p")))
        }
        check(step, of: plan, size)
        guard case .failed = step else { continue }
        // The next attempt knows no more than what was remembered.
        plan = make(facts, plan.memory)
        step = plan.begin()
        check(step, of: plan, size)
    }
}

private func check(_ step: UploadStep, of plan: some UploadPlan, _ size: Int64) {
    let memory = plan.memory
    check((0...size).contains(memory.offset), "an offset of \(memory.offset) of \(size)")
    check(memory.creations <= 3, "\(memory.creations) creations")
    switch step {
    case .call(let call):
        check(call.target == .endpoint || memory.url != nil, "\(call.method) to an upload that is not known")
        for field in call.fields {
            check(!(field.name + field.value).utf8.contains { $0 < 32 }, "the field \(field)")
        }
        guard let body = call.body else { return }
        check(body.lowerBound >= 0 && body.upperBound <= size, "sends \(body) of \(size)")
        guard call.method == "PATCH" else { return }
        check(body.lowerBound == memory.offset, "sends \(body) where the server has \(memory.offset)")
        check(!body.isEmpty || memory.offset == size, "sends nothing at \(memory.offset) of \(size)")
    case .done:
        check(memory.offset == size, "done at \(memory.offset) of \(size)")
    case .failed(.refused(_, let sentence, _)), .failed(.badResponse(let sentence)),
        .failed(.busy(let sentence)):
        checkSentence(sentence)
    case .failed:
        break
    }
}
