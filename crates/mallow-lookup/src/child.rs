//! The child: makes a worker of itself for each request, and says how one ended that did not come to an answer.
//!
//! It reads nothing that others wrote. It has one thread, so that forking copies a process in order.

use crate::isolation::{close_all_but_standard, exit};
use crate::messages::{self, DIED};
use crate::{limits, worker};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};

/// The first word of the child's command line, after its name.
pub(crate) const WORD: &str = "__look-up-names";

/// Returns whether this process is to be the child. The first thing that a program does which uses this crate.
pub fn is_child(words: &[OsString]) -> bool {
    words.len() == 2 && words[1] == OsStr::new(WORD)
}

/// A worker that has not ended.
struct Running {
    /// Readable when it has.
    process: OwnedFd,
    /// Its socket, to say how it ended.
    job: OwnedFd,
}

/// Is the child until whoever started it is gone.
pub fn serve() -> ! {
    limits::confine();
    close_all_but_standard();
    let control = std::io::stdin();
    let mut running: Vec<Running> = Vec::new();
    loop {
        let mut awaited = vec![PollFd::new(&control, PollFlags::IN)];
        awaited.extend(running.iter().map(|it| PollFd::new(&it.process, PollFlags::IN)));
        let looked = rustix::io::retry_on_intr(|| poll(&mut awaited, None));
        let happened: Vec<bool> = awaited.iter().map(|it| !it.revents().is_empty()).collect();
        drop(awaited);
        if looked.is_err() {
            exit(1);
        }
        let mut has_ended = happened[1..].iter();
        running.retain(|it| {
            let has_ended = has_ended.next() == Some(&true);
            if has_ended {
                tell_end(it);
            }
            !has_ended
        });
        if happened[0] {
            match messages::receive(&control, &mut [0; 1], true) {
                Ok(Some((_, jobs))) => running.extend(jobs.into_iter().filter_map(start)),
                Ok(None) | Err(_) => exit(0),
            }
        }
    }
}

fn start(job: OwnedFd) -> Option<Running> {
    let child = std::process::id();
    // SAFETY: this process has one thread, so the new one is in the same state, with no lock that nobody will release.
    match unsafe { libc::fork() } {
        0 => worker::run(job, child),
        // There can be no process more.
        ..0 => None,
        pid => {
            // Without its pidfd it still ends, and nobody is told how.
            let process = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
            Some(Running { process, job })
        }
    }
}

/// Says how a worker ended, unless it came to its end.
fn tell_end(worker: &Running) {
    let status = waitid(WaitId::PidFd(worker.process.as_fd()), WaitIdOptions::EXITED);
    let Ok(Some(status)) = status else { return };
    let (is_signal, number) = match (status.terminating_signal(), status.exit_status()) {
        (Some(signal), _) => (1, signal),
        (None, Some(0)) => return,
        (None, code) => (0, code.unwrap_or(-1)),
    };
    let _ = messages::send(&worker.job, &[&[DIED, is_signal], &number.to_le_bytes()], &[], false);
}
