//! The one table of exit codes.
//!
//! A command that passes a program's status on must never end with one that a program might have meant, so its own failures have
//! codes of their own: those of `env`, `timeout`, `nohup` and `xargs`.

use mallow_launch::LaunchError;
use mallow_profile::Exit;
use mallow_view::Weight;
use std::io::ErrorKind;

/// Everything was as it should be.
pub(crate) const FINE: u8 = Weight::Fine.exit_code();
/// A limit or a verdict failed.
pub(crate) const FAILED: u8 = Weight::Failed.exit_code();
/// The command line, the command to run or a file cannot be used.
pub(crate) const BAD_INPUT: u8 = 2;
/// Some test could not be judged, and none has failed.
pub(crate) const INCONCLUSIVE: u8 = Weight::Inconclusive.exit_code();

/// Where a program's status is passed on: mallow itself failed, and there is none.
pub(crate) const OWN_FAILURE: u8 = 125;
/// There: the program is no file that can be executed.
const NOT_EXECUTABLE: u8 = 126;
/// In the same case: there is no such program.
pub(crate) const NOT_FOUND: u8 = 127;

/// Ctrl-C ended mallow before its work was done: 128 and the number of SIGINT.
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

/// First examples.
pub(crate) const EXAMPLES: &str =
    "Examples:\n  mallow record python3 -c 'print(sorted(range(9)))'\n  mallow report";

/// The table for `--help`.
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

/// What commands that pass a status on end with when the program ended so. A shell does the same.
pub(crate) fn of_program(exit: Exit) -> u8 {
    match exit {
        Exit::Status(status) => status as u8,
        Exit::Signal(signal) => 128_u8.wrapping_add(signal as u8),
        Exit::Exec | Exit::GoesOn => FINE,
    }
}

/// What they end with when the program could not be started.
pub(crate) fn of_launch(error: &LaunchError) -> u8 {
    match error {
        LaunchError::CannotRun { cause, .. } if cause.kind() == ErrorKind::NotFound => NOT_FOUND,
        LaunchError::CannotRun { .. } => NOT_EXECUTABLE,
        // The program would run; it is mallow that does not get into it.
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
    }

    #[test]
    fn the_guide_has_the_same_table() {
        let guide = include_str!("../../../docs/guide/exit-codes.md");
        let rows = guide.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| code"));
        let told = TABLE.map(|(code, meaning)| format!("| {code} | {meaning} |"));
        assert_eq!(rows.collect::<Vec<_>>(), told);
    }
}
