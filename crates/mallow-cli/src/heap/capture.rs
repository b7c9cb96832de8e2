//! `mallow heap capture`: captures a snapshot of a process, or starts a command that can be captured.

use crate::args::LowHeapCapture;
use crate::refusal::Refusal;
use crate::{exit_code, output};
use mallow_capture::process::{self, Runtime};
use mallow_capture::{Options, capture, hooked};
use mallow_collect::exit_of_status;
use mallow_launch::started::is_alive;
use mallow_launch::{Interrupts, RunningCommand, SpawnOptions, start_unrecorded};
use mallow_query::Failure;
use std::path::Path;
use std::thread;
use std::time::Duration;

/// The interval at which it is checked whether the command has exited.
const LOOK: Duration = Duration::from_millis(10);

/// Executes what was requested.
pub(super) fn run(low: &LowHeapCapture) -> Result<u8, Refusal> {
    match low.pid {
        Some(pid) => {
            let options = Options { output: low.output.as_deref(), redact: low.redact, all: low.all };
            take(pid, &options).map_err(Refusal::of_input)?;
            Ok(exit_code::FINE)
        }
        None => start(low),
    }
}

fn take(pid: u32, options: &Options<'_>) -> Result<(), Failure> {
    let stops = |runtime| {
        if matches!(runtime, Runtime::Node | Runtime::Jvm) {
            output::note(&[format!("process {pid} stands still until its snapshot is written.")]);
        }
    };
    let captured = capture(pid, options, stops)?;
    let file = captured.path.display();
    output::inform(&format!(
        "wrote {file}, {} bytes\nnext: mallow heap {}\n",
        captured.bytes,
        quoted(&captured.path)
    ));
    Ok(())
}

fn start(low: &LowHeapCapture) -> Result<u8, Refusal> {
    if let Some(folder) = &low.output {
        std::fs::create_dir_all(folder).map_err(|error| Failure::writing(folder, &error))?;
    }
    let environment = hooked(!low.no_trace, &|name| std::env::var_os(name)).map_err(Failure::from)?;
    let interrupts = Interrupts::watch()?;
    let child = start_unrecorded(&low.command, &SpawnOptions { environment, ..SpawnOptions::default() })?;
    let pid = child.id();
    output::note(&[format!("for a snapshot of its heap: {}", asking(pid, low))]);
    if let Some(every) = low.every {
        let (folder, redact) = (low.output.clone(), low.redact);
        // The thread ends with this process.
        thread::spawn(move || again_and_again(pid, every, folder.as_deref(), redact));
    }
    let mut running = RunningCommand::new(child, interrupts, None);
    loop {
        if running.has_ended() {
            return Ok(exit_code::of_end(running.status().map(exit_of_status)));
        }
        if running.is_interrupted() {
            return Ok(exit_code::INTERRUPTED);
        }
        thread::sleep(LOOK);
    }
}

/// Captures the command and its descendants: the workers of a server hold what grows, and a script's interpreter is a child of its shell.
fn again_and_again(command: u32, every: Duration, folder: Option<&Path>, redact: bool) {
    let mut was_asked = false;
    loop {
        thread::sleep(every);
        let mut asked = process::family(command);
        asked.retain(|pid| process::runtime(*pid).is_some());
        if asked.is_empty() && !was_asked {
            // If no process can be captured, the message names the command. If a shell's interpreter has exited, there was one.
            asked.push(command);
        }
        was_asked |= asked.iter().any(|pid| *pid != command || process::runtime(*pid).is_some());
        for pid in asked {
            let taken = take(pid, &Options { output: folder, redact, all: false });
            // A process that has exited meanwhile needs no message.
            if let Err(failure) = taken
                && is_alive(pid)
            {
                output::warn(&[failure.sentence().to_owned()]);
            }
        }
    }
}

/// Returns the command to type.
fn asking(pid: u32, low: &LowHeapCapture) -> String {
    let folder = low.output.iter().map(|folder| format!(" -o {}", quoted(folder)));
    format!(
        "mallow heap capture {pid}{}{}",
        folder.collect::<String>(),
        if low.redact { " --redact" } else { "" }
    )
}

fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    shlex::try_quote(&text).map_or_else(|_| text.to_string(), Into::into)
}
