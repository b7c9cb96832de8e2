//! What a command has started, and what of it still runs.

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// Has orphans of our commands become our children, so that they can be found.
pub(crate) fn adopt_orphans() {
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// All that descend from a process, parents first.
pub(crate) fn descendants(of: u32) -> Vec<u32> {
    let mut found = children(of);
    let mut at = 0;
    while let Some(one) = found.get(at).copied() {
        found.extend(children(one));
        at += 1;
    }
    found
}

fn children(of: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{of}/task")) else { return Vec::new() };
    let lists =
        threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| Vec::from_iter(list.split_whitespace().filter_map(|pid| pid.parse().ok())))
        .collect()
}

/// The kernel's list of our children, kept open: it is looked at after each run, and that is to cost one call.
#[derive(Debug)]
pub(crate) struct ChildList(Option<File>);

impl ChildList {
    /// Orphans become children of the first thread, whose list this is.
    pub(crate) fn open() -> ChildList {
        let ours = std::process::id();
        ChildList(File::open(format!("/proc/{ours}/task/{ours}/children")).ok())
    }

    /// Returns whether there is nobody but this one. False when it cannot be told.
    pub(crate) fn is_only(&self, pid: Option<u32>) -> bool {
        // A list that is longer has several, of which no two are the same.
        const LIST_BYTES: usize = 32;
        let mut bytes = [0_u8; LIST_BYTES];
        let Some(Ok(count)) = self.0.as_ref().map(|file| file.read_at(&mut bytes, 0)) else { return false };
        let list = bytes.get(..count).and_then(|bytes| std::str::from_utf8(bytes).ok());
        list.is_some_and(|list| list.split_whitespace().all(|child| child.parse() == Ok(pid.unwrap_or(0))))
    }
}

/// Our children that have not ended; those that have are taken leave of.
pub(crate) fn left() -> Vec<u32> {
    let mut left = children(std::process::id());
    left.retain(|pid| {
        let process = Pid::from_raw(*pid as i32);
        !matches!(waitpid(process, WaitOptions::NOHANG), Ok(Some(_)) | Err(_))
    });
    left
}

/// Sends a signal to processes.
pub(crate) fn signal(pids: &[u32], signal: Signal) {
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid as i32)) {
        let _ = kill_process(pid, signal);
    }
}

/// Ends everything that descends from us: once politely, then for good.
pub(crate) fn end_all() {
    use std::time::{Duration, Instant};
    const GRACE: Duration = Duration::from_secs(1);
    let ours = std::process::id();
    let since = Instant::now();
    signal(&descendants(ours), Signal::TERM);
    while !left().is_empty() {
        if since.elapsed() > GRACE {
            signal(&descendants(ours), Signal::KILL);
        }
        if since.elapsed() > 3 * GRACE {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
