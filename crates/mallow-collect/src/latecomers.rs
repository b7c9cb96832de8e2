//! Processes that were started with the recorder and have not registered when everybody who did has ended.
//!
//! A shell that starts a program in the background and ends leaves one that may not have come to its first call. It is waited for as long as a program
//! takes to begin, and named when it still has not registered then. Who is meant is told by the session's variable in its environment.

use crate::image::{is_awaited, name_of};
use crate::starts::Starts;
use mallow_base::printable;
use mallow_wire::handshake::SESSION_VARIABLE;
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};

/// Those of one recording.
#[derive(Debug)]
pub(crate) struct Latecomers {
    /// The variable and its value, with the zero byte behind it.
    variable: Vec<u8>,
    began: Instant,
    /// Who was seen, and when first.
    seen: FxHashMap<u32, Instant>,
}

/// In so long numbers of processes do not begin again: those of later ones are larger.
const GROWING: Duration = Duration::from_secs(2);
/// So many numbers are tried one by one in less time than the kernel lists all processes.
const TRIED_MAX: u32 = 300;

impl Latecomers {
    /// Nobody yet, of a session whose variable has this value.
    pub(crate) fn new(value: &str) -> Latecomers {
        let variable = format!("{SESSION_VARIABLE}={value}\0").into_bytes();
        Latecomers { variable, began: Instant::now(), seen: FxHashMap::default() }
    }

    /// Returns whether somebody may still register of those who were started after process `first`.
    pub(crate) fn are_awaited(&mut self, first: u32, starts: &Starts) -> bool {
        let now = Instant::now();
        let seen = std::mem::take(&mut self.seen);
        let last = last_number().filter(|last| (first..=first + TRIED_MAX).contains(last));
        let started: Vec<u32> = match last.filter(|_| self.began.elapsed() < GROWING) {
            Some(last) => (first + 1..=last).collect(),
            None => processes().collect(),
        };
        let late = started.into_iter().filter(|pid| !starts.has_met(*pid) && self.is_ours(*pid));
        self.seen = late.map(|pid| (pid, seen.get(&pid).copied().unwrap_or(now))).collect();
        let may_register = |pid: u32| starts.pending_of(pid).is_none_or(|noted| noted.may_register());
        self.seen.iter().any(|(pid, since)| may_register(*pid) && is_awaited(*pid, *since))
    }

    /// Returns a sentence for each that still runs and that nobody has noted.
    pub(crate) fn sentences(&self, starts: &Starts) -> Vec<String> {
        let unnoted = self.seen.keys().filter(|pid| starts.pending_of(**pid).is_none());
        let mut unnoted: Vec<u32> = unnoted.copied().collect();
        unnoted.sort_unstable();
        let sentence = |pid: u32| {
            format!(
                "process {pid} ({}) was not recorded: it was still running when everything else had ended, and had not introduced itself",
                printable(&name_of(pid))
            )
        };
        unnoted.into_iter().map(sentence).collect()
    }

    /// Returns whether a process runs and was started in the session. An ended one has no environment.
    fn is_ours(&self, pid: u32) -> bool {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.windows(self.variable.len()).any(|at| at == self.variable) && !is_thread(pid)
    }
}

/// Returns whether a number is that of a thread beside a process's first, which has a folder too.
fn is_thread(number: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{number}/status")).unwrap_or_default();
    let group = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    group.is_some_and(|group| group.trim() != number.to_string())
}

/// The number of the process or thread that was started last, as far as the system tells.
fn last_number() -> Option<u32> {
    std::fs::read_to_string("/proc/loadavg").ok()?.trim_end().rsplit(' ').next()?.parse().ok()
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
