//! The one table of exit codes.

use mallow_profile::Exit;
use mallow_view::Weight;

/// Everything was as it should be.
pub(crate) const FINE: u8 = Weight::Fine.exit_code();
/// A limit or a verdict failed.
pub(crate) const FAILED: u8 = Weight::Failed.exit_code();
/// The command line, the command to run or a file cannot be used.
pub(crate) const BAD_INPUT: u8 = 2;
/// Some test could not be judged, and none has failed.
pub(crate) const INCONCLUSIVE: u8 = Weight::Inconclusive.exit_code();

/// A second Ctrl-C ended mallow before the program: 128 and the number of SIGINT.
pub(crate) const INTERRUPTED: u8 = 130;

/// Every code with its meaning. `record`, `stat` and `heap capture` pass on the program's own status instead.
pub(crate) const TABLE: [(u8, &str); 4] = [
    (FINE, "fine"),
    (FAILED, "a limit or a verdict failed"),
    (BAD_INPUT, "the command line, the command or a file cannot be used"),
    (INCONCLUSIVE, "inconclusive"),
];

/// The table for `--help`.
pub(crate) fn help() -> String {
    let mut text =
        String::from("Example: mallow record -- python3 -c 'print(sorted(range(9)))'\n\nExit codes:\n");
    for (code, meaning) in TABLE {
        text.push_str(&format!("  {code}  {meaning}\n"));
    }
    text.push_str(
        "record, stat and heap capture pass on the program's own status, 128 + N if signal N killed it.",
    );
    text
}

/// What `record`, `stat` and `heap capture` end with when the program ended so. A shell does the same.
pub(crate) fn of_program(exit: Exit) -> u8 {
    match exit {
        Exit::Status(status) => status as u8,
        Exit::Signal(signal) => 128_u8.wrapping_add(signal as u8),
        Exit::Exec | Exit::GoesOn => FINE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for (code, meaning) in TABLE {
            assert!(guide.contains(&format!("| {code} | {meaning} |")), "{code}: {meaning}");
        }
    }
}
