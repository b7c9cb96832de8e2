//! Shows pages of text on a terminal, one screen at a time.
//!
//! Output that does not go to a terminal is read by a program, and must never wait for a key.

use crate::{output, words};
use mallow_query::Failure;
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::env::var_os;
use std::ffi::OsString;
use std::io::{IsTerminal, Write, stdout};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Exit at once if the page fits on the screen, leave the page there, and show colours: the same options that `git` sets.
const LESS: &str = "FRX";

/// Whether `--no-pager` was given.
static IS_UNWANTED: AtomicBool = AtomicBool::new(false);

/// From now on, no page is shown by a pager.
pub(crate) fn turn_off() {
    IS_UNWANTED.store(true, Ordering::Relaxed);
}

/// The command in the user's settings, if any.
static COMMAND: OnceLock<String> = OnceLock::new();

/// From now on, pages are shown by this command; if it is empty, without a pager. Only the first call counts.
pub(crate) fn use_command(command: String) {
    let _ = COMMAND.set(command);
}

/// Writes a page to stdout, on a terminal through a pager.
pub(crate) fn show(page: &str) -> Result<(), Failure> {
    let is_looked_at = stdout().is_terminal() && var_os("TERM").is_some_and(|term| term != "dumb");
    let is_wanted = is_looked_at && !IS_UNWANTED.load(Ordering::Relaxed);
    // A pager that is not installed must not suppress the page.
    match is_wanted.then(command).flatten().and_then(|mut command| command.spawn().ok()) {
        Some(pager) => fill(pager, page),
        None => output::to_stdout(|out| out.write_all(page.as_bytes())),
    }
}

/// Returns the command of `MALLOW_PAGER` or the user's own file, else PAGER, else less; `None` if it is empty.
fn command() -> Option<Command> {
    let asked = COMMAND.get().map(OsString::from).or_else(|| var_os("PAGER"));
    let words: Vec<OsString> = match asked {
        Some(line) => words::of_command(line.to_str()?)?,
        None => vec!["less".into()],
    };
    let (program, arguments) = words.split_first()?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped());
    if var_os("LESS").is_none() {
        command.env("LESS", LESS);
    }
    Some(command)
}

fn fill(mut pager: Child, page: &str) -> Result<(), Failure> {
    // Ctrl-C belongs to the pager, which stops a search by it; if it ended this process, the shell and the pager would both read the keys.
    let _ = flag::register(SIGINT, Arc::new(AtomicBool::new(false)));
    if let Some(mut input) = pager.stdin.take() {
        // The user may quit before the end.
        let _ = input.write_all(page.as_bytes());
    }
    pager.wait()?;
    Ok(())
}
