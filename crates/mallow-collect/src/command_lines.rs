//! What is kept of the command lines of processes: people write passwords there.

use std::ffi::OsString;

/// How much of each command line is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CommandLines {
    /// All of it.
    #[default]
    Whole,
    /// The program, as it was called.
    ProgramsAlone,
}

impl CommandLines {
    /// Returns the part of a command's words that is kept.
    pub fn words(self, command: &[OsString]) -> Vec<String> {
        let kept = match self {
            CommandLines::Whole => command.len(),
            CommandLines::ProgramsAlone => command.len().min(1),
        };
        command[..kept].iter().map(|word| word.to_string_lossy().into_owned()).collect()
    }

    /// The same as one line, blanks between arguments.
    pub(crate) fn line(self, command: &[OsString]) -> String {
        self.words(command).join(" ")
    }

    /// Returns the part that is kept of a process's command line, in which a zero byte ends each argument.
    pub(crate) fn of_process(self, sent: &[u8]) -> String {
        let kept = match self {
            CommandLines::Whole => sent,
            CommandLines::ProgramsAlone => sent.split(|byte| *byte == 0).next().unwrap_or_default(),
        };
        String::from_utf8_lossy(kept).trim_end_matches('\0').replace('\0', " ")
    }
}

#[cfg(test)]
mod tests {
    use super::CommandLines;
    use std::ffi::OsString;

    #[test]
    fn without_arguments_a_command_line_is_the_program_name_only() {
        let sent = b"/opt/an app\0--password\0secret\0";
        assert_eq!(CommandLines::Whole.of_process(sent), "/opt/an app --password secret");
        assert_eq!(CommandLines::ProgramsAlone.of_process(sent), "/opt/an app");
        assert_eq!(CommandLines::ProgramsAlone.of_process(b""), "");
        let words = ["/opt/an app", "--password", "secret"].map(OsString::from);
        assert_eq!(CommandLines::Whole.line(&words), "/opt/an app --password secret");
        assert_eq!(CommandLines::ProgramsAlone.line(&words), "/opt/an app");
        assert_eq!(CommandLines::ProgramsAlone.words(&[]), [""; 0]);
    }
}
