//! A shell command that does the work, and is killed with all processes that it started if its time is up.

use mallow_launch::open_files;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The interval at which the time is checked.
const LOOK: Duration = Duration::from_millis(20);

#[derive(Clone, Copy, PartialEq)]
enum Life {
    Runs,
    /// It exited by itself. Its pid may soon be reused.
    HasEnded,
    WasEnded,
}

/// Runs a command; returns how it exited, and its output. `None` if `is_over` came first.
///
/// # Errors
/// If it cannot be started or waited for.
pub(crate) fn run(
    command: &str,
    is_over: &(dyn Fn() -> bool + Sync),
) -> io::Result<Option<(ExitStatus, Vec<u8>)>> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    // In a group of its own, so that its children can be killed with it.
    let mut child = open_files::as_inherited(|| shell.process_group(0).spawn())?;
    let group = Pid::from_child(&child);
    let life = Mutex::new(Life::Runs);
    let own = || life.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while *own() == Life::Runs {
                if is_over() {
                    let mut life = own();
                    if *life == Life::Runs {
                        *life = Life::WasEnded;
                        let _ = kill_process_group(group, Signal::KILL);
                    }
                }
                std::thread::park_timeout(LOOK);
            }
        });
        let mut printed = Vec::new();
        let read = child.stdout.take().map_or(Ok(0), |mut stdout| stdout.read_to_end(&mut printed));
        // Not reaped yet: until then the pid is its own, and may be signalled.
        let _ = waitid(WaitId::Pid(group), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
        let was_ended = std::mem::replace(&mut *own(), Life::HasEnded) == Life::WasEnded;
        watcher.thread().unpark();
        let status = child.wait()?;
        read?;
        Ok((!was_ended).then_some((status, printed)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_command_has_its_status_and_its_output() {
        let (status, printed) = run("echo done; exit 3", &|| false).unwrap().unwrap();
        assert_eq!((status.code(), printed.as_slice()), (Some(3), &b"done\n"[..]));
    }

    #[test]
    fn what_it_started_ends_with_it_when_there_is_no_time() {
        let begun = Instant::now();
        // The output stays open as long as a process has it: a child that survived would be waited for.
        let ended = run("sleep 60 & sleep 60", &|| begun.elapsed() > Duration::from_millis(100)).unwrap();
        assert!(ended.is_none() && begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }
}
