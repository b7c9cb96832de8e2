//! What a command has started, and what of it still runs.

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::fs;

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

/// Our children that have not ended; those that have are taken leave of.
pub(crate) fn left() -> Vec<u32> {
    let mut left = children(std::process::id());
    left.retain(|pid| {
        let process = Pid::from_raw(*pid as i32);
        !matches!(waitpid(process, WaitOptions::NOHANG), Ok(Some(_)) | Err(_))
    });
    left
}

/// The name of a process.
pub(crate) fn name(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
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
