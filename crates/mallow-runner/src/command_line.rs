//! A command line as words, or as a shell's.

use crate::{RunnerError, Shell};
use std::ffi::{OsStr, OsString};

/// A program with its words, ready to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The file.
    pub path: OsString,
    /// All words, the program's own name first.
    pub words: Vec<OsString>,
    /// Whether it is a shell that was put before the command.
    pub in_shell: bool,
}

/// What means something to a shell and nothing to a program.
const SHELL_LETTERS: &str = "|&;<>()$`\\*?[]#~{}!\n\"'";
/// Words that a shell does itself, or takes for its grammar.
const SHELL_WORDS: [&str; 37] = [
    ".", ":", "alias", "bg", "break", "case", "cd", "command", "continue", "echo", "eval", "exec", "exit",
    "export", "false", "fg", "for", "getopts", "hash", "if", "jobs", "kill", "printf", "pwd", "read",
    "readonly", "return", "set", "shift", "test", "times", "trap", "true", "type", "ulimit", "until",
    "while",
];

/// Returns whether a line says something else to a shell than to a program whose words are split at blanks.
pub fn needs_shell(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    line.contains(|letter| SHELL_LETTERS.contains(letter))
        || first.contains('=')
        || SHELL_WORDS.contains(&first)
        || ["umask", "unalias", "unset", "wait", "local"].contains(&first)
}

impl Program {
    /// The program of a line.
    ///
    /// # Errors
    /// When there is no such program, or no words.
    pub fn of_line(line: &str, shell: &Shell) -> Result<Program, RunnerError> {
        let is_plain = match shell {
            Shell::Never => true,
            Shell::WhereNeeded => !needs_shell(line),
            Shell::Always(_) => false,
        };
        if is_plain { Program::of_words(line) } else { Program::in_shell(line, &shell.words()) }
    }

    /// A line that a shell runs.
    ///
    /// # Errors
    /// When there is no such shell.
    pub fn in_shell(line: &str, shell: &[String]) -> Result<Program, RunnerError> {
        let mut words: Vec<OsString> = shell.iter().map(OsString::from).collect();
        words.extend(["-c".into(), line.into()]);
        Ok(Program { path: found(&words[0])?, words, in_shell: true })
    }

    fn of_words(line: &str) -> Result<Program, RunnerError> {
        let words = shlex::split(line).filter(|words| !words.is_empty());
        let words = words.ok_or_else(|| RunnerError::NoWords { line: line.to_owned() })?;
        let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
        Ok(Program { path: found(&words[0])?, words, in_shell: false })
    }
}

fn found(program: &OsStr) -> Result<OsString, RunnerError> {
    Ok(mallow_launch::find_program(program)?.into_os_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_is_used_where_it_makes_a_difference() {
        for line in [
            "a | b",
            "a > f",
            "echo hi",
            "X=1 cmd",
            "ls *.c",
            "cd x",
            "a $HOME",
            "a 'b c'",
            "sleep 1; ls",
            "true",
        ] {
            assert!(needs_shell(line), "{line}");
        }
        for line in ["./app --rows 10", "sleep 0.1", "grep -i todo file", "make -j8", "a/b=c"] {
            assert_eq!(needs_shell(line), line == "a/b=c", "{line}");
        }
    }

    #[test]
    fn words_are_those_of_a_shell() {
        let program = Program::of_line("sh -c 'exit 3'", &Shell::Never).unwrap();
        assert_eq!(program.words, ["sh", "-c", "exit 3"]);
        assert!(!program.in_shell && program.path.to_string_lossy().ends_with("/sh"));
        let always = Program::of_line("sleep 1", &Shell::Always(vec!["sh".into(), "-e".into()])).unwrap();
        assert_eq!(always.words, ["sh", "-e", "-c", "sleep 1"]);
        assert!(always.in_shell);
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        for line in ["", "  ", "'open", "no-such-program-anywhere 1"] {
            assert!(Program::of_line(line, &Shell::Never).is_err(), "{line}");
        }
    }
}
