//! Processes that were started with the recorder and have not registered when everybody who did has ended.
//!
//! A shell that starts a program in the background and ends leaves one that may not have come to its first call. It is waited for as long as a program
//! takes to begin, and named when it still has not registered then. Who is meant is told by the session's variable in its environment.

use crate::image::is_awaited;
use crate::starts::Starts;
use mallow_base::printable;
use mallow_launch::started::{has_variable, name_of, numbers_after};
use mallow_wire::handshake::SESSION_VARIABLE;
use rustc_hash::FxHashMap;
use std::time::Instant;

/// Those of one recording.
#[derive(Debug)]
pub(crate) struct Latecomers {
    /// The variable and its value, with the zero byte behind it.
    variable: Vec<u8>,
    began: Instant,
    /// Who was seen, and when first.
    seen: FxHashMap<u32, Instant>,
}

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
        let started = numbers_after(first, self.began).into_iter().filter(|pid| !starts.has_met(*pid));
        let late = started.filter(|pid| has_variable(*pid, &self.variable));
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
}
