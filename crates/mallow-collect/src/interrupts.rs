//! Signals that are meant to end the program, or us.

use crate::error::CollectError;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Interrupts so far. The terminal sends them to the program too, which may take its time to end; the second
/// one means us.
#[derive(Debug)]
pub(crate) struct Interrupts {
    interrupts: Arc<AtomicUsize>,
    terminations: Arc<AtomicUsize>,
    terminations_passed: usize,
}

impl Interrupts {
    /// Begins to count.
    pub(crate) fn watch() -> Result<Interrupts, CollectError> {
        let count = |signals: &[i32]| -> io::Result<Arc<AtomicUsize>> {
            let counter = Arc::new(AtomicUsize::new(0));
            for signal in signals {
                let counter = Arc::clone(&counter);
                let add = move || {
                    counter.fetch_add(1, Ordering::Relaxed);
                };
                // SAFETY: the handler only adds to an atomic.
                unsafe { signal_hook::low_level::register(*signal, add) }?;
            }
            Ok(counter)
        };
        use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
        let what = "watch for signals";
        Ok(Interrupts {
            interrupts: count(&[SIGINT, SIGQUIT]).map_err(CollectError::system(what))?,
            terminations: count(&[SIGTERM, SIGHUP]).map_err(CollectError::system(what))?,
            terminations_passed: 0,
        })
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
