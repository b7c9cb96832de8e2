//! Signals that are meant to end the program, or us.

use crate::LaunchError;
use rustix::process::{Pid, Signal, kill_process};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Interrupts so far. The terminal sends them to the program too, which may take its time to end; the second
/// one means us.
#[derive(Debug)]
pub struct Interrupts {
    interrupts: Arc<AtomicUsize>,
    terminations: Arc<AtomicUsize>,
    terminations_passed: usize,
}

impl Interrupts {
    /// Begins to count.
    ///
    /// # Errors
    /// When the system refuses handlers.
    pub fn watch() -> Result<Interrupts, LaunchError> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
        let interrupts = counted(&[SIGINT, SIGQUIT])?;
        Ok(Interrupts { interrupts, terminations: counted(&[SIGTERM, SIGHUP])?, terminations_passed: 0 })
    }

    /// How often somebody wanted us, or the program, to end.
    pub fn heard(&self) -> usize {
        self.count() + self.terminations.load(Ordering::Relaxed)
    }

    /// Counts none: somebody else decides when it is over.
    pub fn ignored() -> Interrupts {
        Interrupts { interrupts: Arc::default(), terminations: Arc::default(), terminations_passed: 0 }
    }

    /// How often the terminal's keys were meant for the program.
    pub(crate) fn count(&self) -> usize {
        self.interrupts.load(Ordering::Relaxed)
    }

    /// Passes on what was sent to us alone, and says whether to stop.
    pub(crate) fn look(&mut self, child: Option<Pid>) -> bool {
        let terminations = self.terminations.load(Ordering::Relaxed);
        if terminations > self.terminations_passed {
            self.terminations_passed = terminations;
            if let Some(child) = child {
                let _ = kill_process(child, Signal::TERM);
            }
        }
        self.interrupts.load(Ordering::Relaxed) >= 2 || terminations >= 2
    }
}

/// How often one of these signals comes from now on.
fn counted(signals: &[i32]) -> Result<Arc<AtomicUsize>, LaunchError> {
    let ignored = IgnoredSignals::read();
    let counter = Arc::new(AtomicUsize::new(0));
    // What we were told to ignore, as `nohup` does, is not for us, and the program is to ignore it as well: a handler
    // would be taken back to the default at its start.
    for signal in signals.iter().filter(|signal| !ignored.has(**signal)) {
        let counter = Arc::clone(&counter);
        let add = move || {
            counter.fetch_add(1, Ordering::Relaxed);
        };
        // SAFETY: the handler only adds to an atomic.
        unsafe { signal_hook::low_level::register(*signal, add) }.map_err(LaunchError::Signals)?;
    }
    Ok(counter)
}

/// The signals that this process was told to ignore, a bit each. The system writes a page of text for it, in tenths of a millisecond.
#[derive(Clone, Copy, Debug)]
pub struct IgnoredSignals(u64);

impl IgnoredSignals {
    /// Asks the system.
    pub fn read() -> IgnoredSignals {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        IgnoredSignals(mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0))
    }

    /// Returns whether a signal is one of them.
    pub fn has(self, signal: i32) -> bool {
        (1..=64).contains(&signal) && self.0 >> (signal - 1) & 1 == 1
    }
}
