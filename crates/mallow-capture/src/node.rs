//! Asking Node, by the signal that it was told to listen to. It writes into its own folder, and stands still until it has.

use crate::CaptureError;
use crate::process;
use crate::target::Target;
use mallow_launch::started::is_alive;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The flag that names the signal.
pub(crate) const FLAG: &str = "--heapsnapshot-signal";

/// Names another folder for what Node writes.
const FOLDER_FLAG: &str = "--diagnostic-dir";

/// How long it may take to begin: between two turns of its loop.
const TIME_MAX: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(5);

/// Takes a snapshot, and returns its bytes.
pub(crate) fn capture(pid: u32, target: &Target, begins: impl FnOnce()) -> Result<u64, CaptureError> {
    let looking = |cause: io::Error| match cause.kind() {
        io::ErrorKind::PermissionDenied => CaptureError::NotOurs(pid),
        _ => CaptureError::Looking { pid, cause },
    };
    let (words, variables) = process::words_and_variables(pid).map_err(looking)?;
    let named = option(FLAG, &words, &variables).ok_or(CaptureError::NoNodeSignal(pid))?;
    let signal = number(&named).ok_or_else(|| CaptureError::UnknownSignal(pid, named.clone()))?;
    if !process::catches(pid, signal.as_raw()) {
        return Err(CaptureError::NodeNotReady(pid, named));
    }
    // A path of its own is one below its root; that it is relative to its folder is the usual case.
    let folder = match option(FOLDER_FLAG, &words, &variables) {
        Some(folder) if folder.starts_with('/') => {
            process::file(pid, "root").join(folder.trim_start_matches('/'))
        }
        folder => process::file(pid, "cwd").join(folder.unwrap_or_default()),
    };
    let before = snapshots(pid, &folder).map_err(looking)?;
    let process = Pid::from_raw(pid as i32).ok_or(CaptureError::NoProcess(pid))?;
    begins();
    kill_process(process, signal).map_err(|cause| looking(cause.into()))?;
    let deadline = Instant::now() + TIME_MAX;
    let written = loop {
        let new = snapshots(pid, &folder).map_err(looking)?.difference(&before).next().cloned();
        if let Some(new) = new {
            break new;
        }
        if Instant::now() > deadline || !is_alive(pid) {
            return Err(CaptureError::NoAnswer(pid));
        }
        std::thread::sleep(PAUSE);
    };
    while is_open(pid, &written) {
        std::thread::sleep(PAUSE);
    }
    if !ends_well(&written).map_err(looking)? {
        let cause = format!("it stays as {}", written.display());
        return Err(CaptureError::Incomplete { pid, cause });
    }
    target.take(&written)
}

/// The last value of an option: what stands on the command line comes after the environment.
fn option(name: &str, words: &[String], variables: &[String]) -> Option<String> {
    let in_environment = variables.iter().find_map(|line| line.strip_prefix("NODE_OPTIONS="));
    let of_environment = in_environment.unwrap_or_default().split_whitespace().map(str::to_owned);
    // Behind the script, words are the program's.
    let own = words.iter().skip(1).take_while(|word| word.starts_with('-')).cloned();
    let all: Vec<String> = of_environment.chain(own).collect();
    let value = |at: usize| match all[at].strip_prefix(name)?.strip_prefix('=') {
        Some(value) => Some(value.to_owned()),
        None => all.get(at + 1).filter(|_| all[at] == name).cloned(),
    };
    (0..all.len()).rev().find_map(value)
}

fn number(name: &str) -> Option<Signal> {
    match name {
        "SIGUSR2" => Some(Signal::USR2),
        "SIGUSR1" => Some(Signal::USR1),
        "SIGHUP" => Some(Signal::HUP),
        "SIGWINCH" => Some(Signal::WINCH),
        "SIGPIPE" => Some(Signal::PIPE),
        "SIGALRM" => Some(Signal::ALARM),
        _ => None,
    }
}

/// Its snapshots in the folder: `Heap.20260131.235959.PID.THREAD.001.heapsnapshot`.
fn snapshots(pid: u32, folder: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let of_process = format!(".{}.", process::inner_pid(pid));
    let is_its = |name: &str| {
        name.starts_with("Heap.") && name.ends_with(".heapsnapshot") && name.contains(&of_process)
    };
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(is_its) {
            found.insert(entry.path());
        }
    }
    Ok(found)
}

fn is_open(pid: u32, written: &Path) -> bool {
    let name = written.file_name().unwrap_or_default().to_string_lossy().into_owned();
    process::open_files(pid).unwrap_or_default().iter().any(|(_, target)| target.ends_with(&name))
}

/// A snapshot is one object of JSON.
fn ends_well(written: &Path) -> io::Result<bool> {
    let file = File::open(written)?;
    let bytes = file.metadata()?.len();
    let mut end = [0; 8];
    file.read_exact_at(&mut end, bytes.saturating_sub(8))?;
    Ok(end.trim_ascii_end().last() == Some(&b'}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_an_option_counts() {
        let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let variables = ["NODE_OPTIONS=--max-old-space-size=64 --heapsnapshot-signal=SIGUSR2".to_owned()];
        let of = |line: &str| option(FLAG, &words(line), &variables);
        assert_eq!(of("node app.js --heapsnapshot-signal=SIGHUP").as_deref(), Some("SIGUSR2"));
        assert_eq!(of("node --heapsnapshot-signal=SIGHUP app.js").as_deref(), Some("SIGHUP"));
        assert_eq!(of("node --heapsnapshot-signal SIGHUP app.js").as_deref(), Some("SIGUSR2"));
        assert_eq!(option(FLAG, &words("node app.js"), &[]), None);
    }
}
