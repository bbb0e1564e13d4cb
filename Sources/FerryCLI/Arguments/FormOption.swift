import FerryCore

/// A value of `--form` or `--form-file`.
struct FormOption: Equatable, Sendable {
    /// Which of the two it is.
    var id: OptionID
    /// As it was given.
    var value: String

    /// Reads it; the path of a file stays as it was given.
    ///
    /// - Throws: A usage error of one sentence, which never repeats the value of a field.
    func part() throws(FerryError) -> FormPart {
        let name = self.id == .form ? "--form" : "--form-file"
        let shape = self.id == .form ? "NAME=VALUE" : "NAME=PATH"
        guard let equals = self.value.firstIndex(of: "=") else {
            throw .usage("\(name): a field looks like \(shape), and this one has no equals sign")
        }
        let field = String(self.value[..<equals])
        let rest = self.value[self.value.index(after: equals)...]
        guard !field.isEmpty else { throw .usage("\(name): the field before the equals sign has no name") }
        guard self.id == .formFile else { return FormPart(name: field, content: .value(String(rest))) }
        return try FilePart(rest, of: field).part
    }
}

/// Reads `PATH[;type=T][;filename=F]`; each of the three may stand in double quotes, with `\"` and `\\` inside.
private struct FilePart {
    private(set) var part: FormPart
    private let name: String
    private var rest: Substring.UnicodeScalarView

    init(_ text: Substring, of field: String) throws(FerryError) {
        self.name = "--form-file \(field.shown)"
        self.rest = text.unicodeScalars
        self.part = FormPart(name: field, content: .file(path: ""))
        let path = try self.value("PATH")
        guard path != "-" else {
            throw .usage("\(self.name): standard input cannot be part of a form; only 'ferry put -' sends it")
        }
        self.part.content = .file(path: path)
        while self.rest.popFirst() != nil { try self.parameter() }
    }

    /// What follows a semicolon.
    private mutating func parameter() throws(FerryError) {
        let key = String(self.rest.prefix { $0 != "=" && $0 != ";" })
        self.rest = self.rest.dropFirst(key.unicodeScalars.count)
        guard ["type", "filename"].contains(key), self.rest.popFirst() == "=" else {
            throw .usage(
                "\(self.name): after ';' come type= or filename=, not '\(key.shown)'; "
                    + "a value that holds ';' stands in double quotes"
            )
        }
        let value = try self.value("\(key)=")
        if key == "filename" {
            self.part.fileName = value
            return
        }
        guard MediaTypes.isValid(value) else {
            throw .usage("\(self.name): '\(value.shown)' is no media type such as image/png")
        }
        self.part.contentType = value
    }

    /// Up to the next semicolon, or a text in quotes.
    private mutating func value(_ what: String) throws(FerryError) -> String {
        var value = String.UnicodeScalarView()
        if self.rest.first == "\"" {
            self.rest.removeFirst()
            var isClosed = false
            while !isClosed {
                guard let scalar = self.rest.popFirst() else {
                    throw .usage("\(self.name): the double quote before \(what) is not closed")
                }
                if scalar == "\\", let next = self.rest.first, next == "\"" || next == "\\" {
                    value.append(self.rest.removeFirst())
                } else if scalar == "\"" {
                    isClosed = true
                } else {
                    value.append(scalar)
                }
            }
            guard self.rest.isEmpty || self.rest.first == ";" else {
                throw .usage("\(self.name): after a closing double quote comes ';' or nothing")
            }
        } else {
            while let scalar = self.rest.first, scalar != ";" {
                value.append(scalar)
                self.rest.removeFirst()
            }
        }
        guard !value.isEmpty else { throw .usage("\(self.name): \(what) is empty") }
        return String(value)
    }
}
