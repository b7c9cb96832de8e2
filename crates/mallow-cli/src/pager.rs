//! Pages of text on a terminal, a screen at a time.
//!
//! What goes anywhere else than to a terminal is read by a program, and must never wait for a key.

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

/// Ends by itself after a page that fits the screen, leaves the page there, and shows colours: `git` asks the same of it.
const LESS: &str = "FRX";

/// What `--no-pager` said.
static IS_UNWANTED: AtomicBool = AtomicBool::new(false);

/// No page is shown by a pager from now on.
pub(crate) fn turn_off() {
    IS_UNWANTED.store(true, Ordering::Relaxed);
}

/// What the user's settings say, if anything.
static COMMAND: OnceLock<String> = OnceLock::new();

/// Pages are shown by this command from now on; by none if it is empty. Only the first call counts.
pub(crate) fn use_command(command: String) {
    let _ = COMMAND.set(command);
}

/// Writes a page to stdout, through a pager where people look at it.
pub(crate) fn show(page: &str) -> Result<(), Failure> {
    let is_looked_at = stdout().is_terminal() && var_os("TERM").is_some_and(|term| term != "dumb");
    let is_wanted = is_looked_at && !IS_UNWANTED.load(Ordering::Relaxed);
    // One that is not installed is no reason to show nothing.
    match is_wanted.then(command).flatten().and_then(|mut command| command.spawn().ok()) {
        Some(pager) => fill(pager, page),
        None => output::to_stdout(|out| out.write_all(page.as_bytes())),
    }
}

/// What `MALLOW_PAGER` or the user's own file says, else `PAGER`, else less; an empty one is none.
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
    // Ctrl-C is for the pager, which stops searching by it; if it ended us, two would read the keys.
    let _ = flag::register(SIGINT, Arc::new(AtomicBool::new(false)));
    if let Some(mut input) = pager.stdin.take() {
        // Whoever has seen enough leaves before the end.
        let _ = input.write_all(page.as_bytes());
    }
    pager.wait()?;
    Ok(())
}
