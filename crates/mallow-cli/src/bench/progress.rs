//! The line that is rewritten while a benchmark runs.

use mallow_runner::{Observer, Progress};
use mallow_text::bench::sentences::progress;
use mallow_text::cut_end;
use std::time::{Duration, Instant};

/// Shows nothing.
pub(super) struct Quiet;

impl Observer for Quiet {
    fn before_run(&mut self, _: &Progress<'_>) {}
}

/// Shows progress on a terminal.
#[derive(Default)]
pub(super) struct Terminal {
    written: Option<Instant>,
}

/// People do not read faster, and short runs must not be disturbed.
const INTERVAL: Duration = Duration::from_millis(200);
/// Intervals over thousands of pairs take too long to compute.
const PAIRS_SHOWN_MAX: usize = 500;

impl Observer for Terminal {
    fn before_run(&mut self, it: &Progress<'_>) {
        if self.written.is_some_and(|at| at.elapsed() < INTERVAL) || it.runs > PAIRS_SHOWN_MAX {
            return;
        }
        self.written = Some(Instant::now());
        let seconds = it.elapsed.as_secs_f64();
        let line = progress(it.session, it.command, it.runs, it.wanted, seconds, it.is_warmup);
        let width = crate::terminal::style(&std::io::stderr()).width;
        crate::output::inform(&format!("\r\x1b[K{}", cut_end(&line, width.saturating_sub(1))));
    }

    fn pause(&mut self) {
        if self.written.take().is_some() {
            crate::output::inform("\r\x1b[K");
        }
    }
}
