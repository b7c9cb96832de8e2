//! The table of exit codes.
//!
//! A command that passes on the status of a program must not exit with a status that the program might have used. So
//! its own failures have separate codes: those of `env`, `timeout`, `nohup` and `xargs`.

use mallow_launch::LaunchError;
use mallow_profile::Exit;
use mallow_view::Weight;
use std::io::ErrorKind;

/// Success.
pub(crate) const FINE: u8 = Weight::Fine.exit_code();
/// A limit or a verdict failed.
pub(crate) const FAILED: u8 = Weight::Failed.exit_code();
/// The command line, the command to run or a file cannot be used.
pub(crate) const BAD_INPUT: u8 = 2;
/// Some test could not be judged, and none has failed.
pub(crate) const INCONCLUSIVE: u8 = Weight::Inconclusive.exit_code();

/// For commands that pass on a program's status: mallow itself failed, and there is no such status.
pub(crate) const OWN_FAILURE: u8 = 125;
/// For these: the program is not an executable file.
const NOT_EXECUTABLE: u8 = 126;
/// For these: the program does not exist.
pub(crate) const NOT_FOUND: u8 = 127;

/// Ctrl-C ended mallow before its work was done: 128 plus the number of SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// Every code with its meaning.
pub(crate) const TABLE: [(u8, &str); 8] = [
    (FINE, "success"),
    (FAILED, "a limit is exceeded, or the verdict is a failure"),
    (BAD_INPUT, "the command line, the command or a file cannot be used"),
    (INCONCLUSIVE, "inconclusive"),
    (OWN_FAILURE, "if a program's status is passed on: mallow itself failed"),
    (NOT_EXECUTABLE, "in the same case: the program cannot be executed"),
    (NOT_FOUND, "in the same case: the program was not found"),
    (INTERRUPTED, "ended by Ctrl-C"),
];

/// The most important examples.
pub(crate) const EXAMPLES: &str =
    "Examples:\n  mallow record python3 -c 'print(sorted(range(9)))'\n  mallow report";

/// Returns the table for `--help`.
pub(crate) fn help() -> String {
    let mut text = format!("{EXAMPLES}\n\nExit codes:\n");
    for (code, meaning) in TABLE {
        text.push_str(&format!("  {code:>3}  {meaning}\n"));
    }
    text.push_str(
        "record, stat, cpu and heap capture -- COMMAND pass on the program's own status,\n\
         128 + N if signal N killed it.",
    );
    text
}

/// Returns the exit code of a command that passes a status on, if the system told it.
pub(crate) fn of_end(exit: Option<Exit>) -> u8 {
    exit.map_or(OWN_FAILURE, of_program)
}

/// A shell does the same.
fn of_program(exit: Exit) -> u8 {
    match exit {
        Exit::Status(status) => status as u8,
        Exit::Signal(signal) => 128_u8.wrapping_add(signal as u8),
        Exit::Exec | Exit::GoesOn => FINE,
    }
}

/// Returns its exit code if the program could not be started.
pub(crate) fn of_launch(error: &LaunchError) -> u8 {
    match error {
        LaunchError::CannotRun { cause, .. } if cause.kind() == ErrorKind::NotFound => NOT_FOUND,
        LaunchError::CannotRun { .. } => NOT_EXECUTABLE,
        // The program could run; mallow cannot record it.
        _ => OWN_FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_start_is_told_from_one_that_cannot_be_recorded() {
        let cannot_run = |kind: ErrorKind| LaunchError::CannotRun { command: "a".into(), cause: kind.into() };
        assert_eq!(of_launch(&cannot_run(ErrorKind::NotFound)), 127);
        for kind in [ErrorKind::PermissionDenied, ErrorKind::IsADirectory, ErrorKind::NotADirectory] {
            assert_eq!(of_launch(&cannot_run(kind)), 126, "{kind:?}");
        }
        let not_entered = LaunchError::CannotPreload { path: "a".into(), reason: "it is 32-bit" };
        assert_eq!(of_launch(&not_entered), 125);
    }

    #[test]
    fn a_programs_end_is_passed_on_as_a_shell_does() {
        assert_eq!(of_program(Exit::Status(0)), 0);
        assert_eq!(of_program(Exit::Status(255)), 255);
        assert_eq!(of_program(Exit::Signal(9)), 137);
        assert_eq!(of_program(Exit::Signal(64)), 192);
        assert_eq!((of_end(Some(Exit::Status(3))), of_end(None)), (3, 125), "unknown is not 0");
    }

    #[test]
    fn the_guide_has_the_same_table() {
        let guide = include_str!("../../../docs/guide/exit-codes.md");
        let rows = guide.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| code"));
        let told = TABLE.map(|(code, meaning)| format!("| {code} | {meaning} |"));
        assert_eq!(rows.collect::<Vec<_>>(), told);
    }
}
