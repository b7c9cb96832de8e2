//! Running other programs: shown before they start, and their failures said as sentences.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitStatus, Stdio};

/// Runs `command` with its output on ours and no input, so that a tool that would ask a question fails at once
/// on a machine without a terminal.
pub(crate) fn shown(command: &mut Command) -> Result<(), String> {
    println!("    $ {}", as_typed(command));
    let status = command
        .stdin(Stdio::null())
        .status()
        .map_err(|error| format!("`{}` could not be started: {error}.", as_typed(command)))?;
    if status.success() { Ok(()) } else { Err(format!("`{}` failed ({status}).", as_typed(command))) }
}

/// Runs `command` and returns what it wrote to stdout.
pub(crate) fn captured(command: &mut Command) -> Result<String, String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("`{}` could not be started: {error}.", as_typed(command)))?;
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        let status = output.status;
        return Err(format!("`{}` failed ({status}): {}", as_typed(command), complaint.trim()));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| format!("`{}` wrote something that is not UTF-8.", as_typed(command)))
}

/// How a command ended, and what it wrote to stdout.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// What it wrote.
    pub(crate) text: String,
    /// How it ended.
    pub(crate) status: ExitStatus,
}

impl Outcome {
    /// Returns whether it ended with status 0.
    pub(crate) fn is_success(&self) -> bool {
        self.status.success()
    }
}

/// Runs `command` as [`shown`] does and keeps what it writes to stdout, which is shown line by line as it comes.
pub(crate) fn watched(command: &mut Command) -> Result<Outcome, String> {
    println!("    $ {}", as_typed(command));
    kept(command, |line| println!("{line}"))
}

/// Runs `command` and keeps what it writes to stdout.
pub(crate) fn printed(command: &mut Command) -> Result<String, String> {
    println!("    $ {}", as_typed(command));
    let outcome = kept(command, |_| ())?;
    if outcome.is_success() {
        return Ok(outcome.text);
    }
    Err(format!("`{}` failed ({}).", as_typed(command), outcome.status))
}

/// Runs `command`, hands each line of its stdout to `each`, and keeps all of them.
pub(crate) fn kept(command: &mut Command, mut each: impl FnMut(&str)) -> Result<Outcome, String> {
    let typed = as_typed(command);
    let because = |error: std::io::Error| format!("`{typed}` could not be started: {error}.");
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(because)?;
    let mut text = String::new();
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            each(&line);
            text.push_str(&line);
            text.push('\n');
        }
    }
    Ok(Outcome { text, status: child.wait().map_err(because)? })
}

/// The command as one would type it into a shell, variables that we set for it included.
pub(crate) fn as_typed(command: &Command) -> String {
    let mut words: Vec<String> = command
        .get_envs()
        .filter_map(|(name, value)| {
            Some(format!("{}={}", name.to_string_lossy(), quoted(&value?.to_string_lossy())))
        })
        .collect();
    words.push(command.get_program().to_string_lossy().into_owned());
    words.extend(command.get_args().map(|word| quoted(&word.to_string_lossy())));
    words.join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_back_into_a_shell() {
        let mut command = Command::new("cargo");
        command.args(["doc", "--no-deps", "it's"]).env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(as_typed(&command), r"RUSTDOCFLAGS='-D warnings' cargo doc --no-deps 'it'\''s'");
    }

    #[test]
    fn a_failing_command_is_named() {
        let fault = shown(Command::new("sh").args(["-c", "exit 3"])).unwrap_err();
        assert_eq!(fault, "`sh -c 'exit 3'` failed (exit status: 3).");
        let fault = captured(Command::new("sh").args(["-c", "echo because >&2; exit 4"])).unwrap_err();
        assert_eq!(fault, "`sh -c 'echo because >&2; exit 4'` failed (exit status: 4): because");
    }

    #[test]
    fn what_a_command_wrote_is_kept_with_its_end() {
        let outcome = watched(Command::new("sh").args(["-c", "echo one; echo two; exit 5"])).unwrap();
        assert_eq!((outcome.text.as_str(), outcome.status.code()), ("one\ntwo\n", Some(5)));
        let fault = printed(Command::new("sh").args(["-c", "exit 6"])).unwrap_err();
        assert_eq!(fault, "`sh -c 'exit 6'` failed (exit status: 6).");
    }

    #[test]
    fn a_command_that_does_not_exist_is_named() {
        let fault = shown(&mut Command::new("no-such-program-here")).unwrap_err();
        assert!(fault.starts_with("`no-such-program-here` could not be started: "), "{fault}");
    }
}
