//! When a program ended that another command runs, seen from outside: the command goes on after it.

use procfs::process::Process;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Some programs live for few milliseconds only.
const INTERVAL: Duration = Duration::from_micros(500);

/// A program that is waited for.
pub(super) struct End(JoinHandle<Option<Instant>>);

impl End {
    /// Waits for the first child of the process `command` that runs `executable`.
    pub(super) fn watch(command: u32, executable: &Path) -> End {
        // What `/proc` names is the file behind all links.
        let executable = executable.canonicalize().unwrap_or_else(|_| executable.to_owned());
        End(thread::spawn(move || {
            let program = find(command, &executable)?;
            poll(&mut [PollFd::new(&program, PollFlags::IN)], None).ok()?;
            Some(Instant::now())
        }))
    }

    /// Returns when it ended, of a command that has ended; none if it was not seen.
    pub(super) fn of_ended(self) -> Option<Instant> {
        self.0.join().unwrap_or_default()
    }
}

/// Looks for it until it is there, or the command is not any more.
fn find(command: u32, executable: &Path) -> Option<OwnedFd> {
    loop {
        let running = Process::new(command.cast_signed()).ok()?;
        let children = running.task_main_thread().ok()?.children().ok()?;
        for pid in children {
            let pid = pid.cast_signed();
            let pidfd = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty());
            // Before it runs the program it is the command still.
            if Process::new(pid).is_ok_and(|child| child.exe().is_ok_and(|path| path == executable)) {
                return pidfd.ok();
            }
        }
        if running.stat().is_ok_and(|stat| stat.state == 'Z') {
            return None;
        }
        thread::sleep(INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::super::programs;
    use super::*;
    use std::process::Command;

    #[test]
    fn a_program_ends_before_the_command_that_goes_on() {
        let sleep = programs::executable("sleep").unwrap();
        let begun = Instant::now();
        let mut shell = Command::new("sh").args(["-c", "sleep 0.2; exit 0"]).spawn().unwrap();
        let end = End::watch(shell.id(), &sleep);
        shell.wait().unwrap();
        let ended = end.of_ended().unwrap();
        assert!(ended > begun + Duration::from_millis(150) && ended <= Instant::now());
    }

    #[test]
    fn a_command_without_the_program_has_no_such_end() {
        let mut shell = Command::new("sh").args(["-c", "exit 0"]).spawn().unwrap();
        let end = End::watch(shell.id(), Path::new("/nonexistent/program"));
        shell.wait().unwrap();
        assert_eq!(end.of_ended(), None);
    }
}
