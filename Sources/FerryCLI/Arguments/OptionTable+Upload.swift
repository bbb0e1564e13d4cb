extension OptionTable {
    private static let uploads: [CommandName] = [.put, .add]

    /// The options that uploads alone have; `add` takes them with what makes it an upload.
    static let upload: [CommandOption] = [
        CommandOption(
            .upload,
            "upload",
            value: "FILE",
            kind: .file,
            key: "upload",
            repeats: true,
            commands: [.add],
            help:
                "Upload FILE to the URL in place of downloading it; - is standard input. May be given more than "
                + "once, with a URL that ends in a slash."
        ),
        CommandOption(
            .form,
            "form",
            value: "NAME=VALUE",
            kind: .text,
            key: "form",
            repeats: true,
            commands: Self.uploads,
            help: "Send a form (multipart/form-data) with this field; VALUE is sent as it stands."
        ),
        CommandOption(
            .formFile,
            "form-file",
            value: "NAME=PATH",
            kind: .text,
            key: "form_file",
            repeats: true,
            commands: Self.uploads,
            help:
                "Send a form with the file PATH in this field. ;type=TYPE after it names the media type, and "
                + ";filename=NAME what the server is told; what holds a semicolon stands in double quotes."
        ),
        CommandOption(
            .dataFile,
            "data-file",
            value: "FILE",
            kind: .file,
            key: "data_file",
            commands: Self.uploads,
            help: "Send FILE as the body of one request to exactly this URL, to which no name is added."
        ),
        CommandOption(
            .method,
            "method",
            value: "METHOD",
            kind: .text,
            key: "method",
            commands: Self.uploads,
            help: "Use this method in place of PUT, or of POST for forms."
        ),
        CommandOption(
            .transport,
            "protocol",
            value: "NAME",
            kind: .word(UploadArguments.protocolWords),
            key: "protocol",
            commands: Self.uploads,
            help:
                "How to upload: auto (the default) asks the server; put, post and multipart send one request; tus "
                + "and ietf can go on in the middle."
        ),
        CommandOption(
            .idempotencyKey,
            "idempotency-key",
            value: "KEY",
            kind: .text,
            key: "idempotency_key",
            commands: Self.uploads,
            help:
                "Send the header field Idempotency-Key, so that the server knows a repeated request; auto makes "
                + "a key up."
        ),
        CommandOption(
            .response,
            "response",
            value: "FILE",
            kind: .file,
            key: "response",
            commands: Self.uploads,
            help: "Write the body of the server's answer to FILE."
        ),
    ]
}
