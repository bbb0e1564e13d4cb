import FerryControl
import FerryCore

/// The text of `ferry --help` and `ferry help COMMAND`, made from the tables.
enum HelpText {
    /// The list of commands.
    static var overview: String {
        var text = "Usage: ferry COMMAND [OPTION]... [OPERAND]...\n\n"
        text += "Downloads and uploads that survive lost links, crashes and reboots.\n\nCommands:\n"
        let width = CommandName.allCases.map { Self.columns($0).count }.max() ?? 0
        for command in CommandName.allCases {
            let name = Self.columns(command)
            text += "  \(name)\(String(repeating: " ", count: width - name.count))  \(command.summary)\n"
        }
        return text + "\n'ferry help COMMAND' tells more about a command, and 'man ferry' all.\n"
    }

    /// One command with its options.
    static func text(for command: CommandName) -> String {
        var text = "Usage: \(Self.synopsis(command))\n"
        for paragraph in command.description {
            text += "\n" + Self.wrap(paragraph, indent: 0)
        }
        text += "\nOptions:\n"
        for option in OptionTable.visible(for: command) {
            text += "  \(option.usage)\n" + Self.wrap(option.help, indent: 10)
        }
        return text
    }

    /// `ferry get [OPTION]... URL...`.
    static func synopsis(_ command: CommandName) -> String {
        let operands = command.operands.isEmpty ? "" : " \(command.operands)"
        return "ferry \(command.rawValue) [OPTION]...\(operands)"
    }

    private static func columns(_ command: CommandName) -> String {
        switch command {
        case .pause, .resume, .cancel, .retry, .remove: "\(command.rawValue) JOB..."
        case .service: "\(command.rawValue) ACTION"
        default: command.operands.isEmpty ? command.rawValue : "\(command.rawValue) \(command.operands)"
        }
    }

    /// Breaks a paragraph into lines of at most 79 characters.
    static func wrap(_ paragraph: String, indent: Int) -> String {
        let margin = String(repeating: " ", count: indent)
        var text = ""
        var line = ""
        for word in paragraph.split(separator: " ") {
            if !line.isEmpty, indent + line.count + 1 + word.count > 79 {
                text += margin + line + "\n"
                line = ""
            }
            line += (line.isEmpty ? "" : " ") + word
        }
        return text + margin + line + "\n"
    }
}
