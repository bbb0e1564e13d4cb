/// The fields of the JSON documents, as the manual lists them; a test compares them with what is encoded.
enum JSONFields {
    /// One field and what it means.
    typealias Field = (name: String, help: String)

    /// Of a job.
    static let job: [Field] = [
        ("type", "Always \"job\"."),
        ("id", "The number."),
        ("kind", "\"download\" or \"upload\"."),
        ("state", "One of the seven states."),
        ("phase", "Of a running job: connecting, transferring, verifying or finishing."),
        ("reason", "Why it waits or failed, in one word."),
        ("message", "What happened last, or what it waits for, in one sentence."),
        ("advice", "What helps."),
        ("url", "The URL without user name, password and the values of the query."),
        (
            "path",
            "The final path, null until the name is known; of an upload the file that is sent, null for forms."
        ),
        ("result_url", "Of an upload: where the server keeps it, null until that is known."),
        ("group", "The group."),
        ("priority", "From -100 to 100."),
        ("after", "The numbers of the jobs that have to be completed before it; empty if there are none."),
        ("window", "The hours at which it may run, HH:MM-HH:MM in its owner's local time; null if at any."),
        (
            "bytes_done",
            "Bytes that are there; of an upload those that the server has acknowledged (protocols tus and "
                + "ietf), else those that were sent."
        ),
        ("bytes_durable", "Bytes that survive a power cut."),
        ("bytes_total", "The whole size, null if unknown."),
        ("rate_bytes_per_s", "Over the last seconds, null unless running."),
        ("eta_s", "Seconds to the end at that rate."),
        ("attempt", "0 before the first try; counts up."),
        ("retry_at", "When it will be tried again; of a queued job, when the pause of its host is over."),
        ("created_at", "When it was accepted."),
        ("started_at", "When it first ran."),
        ("finished_at", "When it ended."),
        ("validator", "What proves the remote object to be the same: kind, value, strong."),
        ("checksum", "The digest: algorithm, expected, actual, source."),
        ("protocol", "The transfer protocol."),
        ("http_version", "\"1.1\" or \"2\"."),
        (
            "length_proved",
            "False if the server gave no length, or the body was unpacked, and no checksum was known."
        ),
        ("content_encoding", "The coding that the server applied unasked."),
        ("segments", "In show only: start_bytes, end_bytes and durable_bytes of each."),
        (
            "answer",
            "In show only, of an upload: status, headers, body and is_cut of the server's last answer."
        ),
        ("deadline_at", "In show only, of a job with a deadline: when it gives up."),
        ("limit_rate_bytes_per_s", "In show only, and where there is one: the job's own limit."),
        ("renew", "In show only, and where there is one: the program that has new links."),
    ]

    /// Of an event.
    static let event: [Field] = [
        ("type", "Always \"event\"."),
        ("seq", "Grows by one an event; never reused."),
        ("time", "When."),
        ("job", "The job's number."),
        ("kind", "What happened, in one word."),
        ("state", "The state after it."),
        ("reason", "Why."),
        ("message", "The same in one sentence."),
    ]

    /// Of a line about progress.
    static let progress: [Field] = [
        ("type", "Always \"progress\"."),
        ("id", "The job's number."),
        ("phase", "As in a job."),
        ("path", "As in a job."),
        ("bytes_done", "As in a job."),
        ("bytes_durable", "As in a job."),
        ("bytes_total", "As in a job."),
        ("rate_bytes_per_s", "As in a job."),
        ("eta_s", "As in a job."),
    ]

    /// Of an attempt in `log`.
    static let attempt: [Field] = [
        ("type", "Always \"attempt\"."),
        ("attempt", "The number, from 1."),
        ("began_at", "When it began."),
        ("ended_at", "When it ended, null while it runs."),
        ("outcome", "How it ended, in one word."),
        ("message", "The same in one sentence."),
        ("offset_bytes", "The first byte asked for."),
        ("received_bytes", "Bytes of the body received, of an upload those sent."),
        ("hops", "The requests: url, status, address, http_version, first_byte_ms of each."),
    ]

    /// Of a finding of `doctor`.
    static let finding: [Field] = [
        ("check", "What was looked at, in one word."),
        ("level", "ok, note or problem."),
        ("message", "The finding, in one sentence."),
        ("advice", "What helps."),
        ("repaired", "Whether it was wrong and has been put right just now."),
    ]
}
