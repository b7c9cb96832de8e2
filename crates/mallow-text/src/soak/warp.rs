//! The block of the script "Warp Memory leak test" for each iteration, line for line as the script prints them, then the verdict.
//!
//! One line differs: the worst latency is the true maximum, and not a percentile.

use super::{finding, sentence};
use crate::{printable, wrapped};
use mallow_evidence::{Sample, SoakReport};
use mallow_view::soak::measured;
use std::time::Duration;

const WIDTH: usize = 80;
/// The widths of the rules around the settings and an iteration.
const WIDE_RULE: usize = 40;
const RULE: usize = 31;

/// The script's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The host name.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The duration of each load.
    pub duration: Duration,
    /// Concurrent workers.
    pub workers: u32,
    /// The number of iterations.
    pub tries: u32,
}

/// Returns the settings, a block for each iteration, and the verdict.
pub fn text(report: &SoakReport, settings: Option<&Settings>) -> String {
    let mut out = settings.map(header).unwrap_or_default();
    out.push_str(&format!("Server running on PID: {}\n", report.pid));
    let blocks: Vec<&Sample> = measured(&report.samples).filter(|sample| !sample.is_after_exit()).collect();
    for (at, sample) in blocks.iter().enumerate() {
        out.push_str(&block(sample, at + 1, blocks.len()));
    }
    out.push_str(&format!("{}\n", "=".repeat(RULE)));
    for line in wrapped(&sentence::verdict(report), WIDTH) {
        out.push_str(&format!("{line}\n"));
    }
    let findings = report.conclusion.findings.iter().map(finding::finding);
    for sentence in findings.chain(report.warnings.iter().cloned()) {
        for line in wrapped(&printable(&sentence), WIDTH) {
            out.push_str(&format!("{line}\n"));
        }
    }
    out
}

fn header(settings: &Settings) -> String {
    let rule = "-".repeat(WIDE_RULE);
    let duration = settings.duration.as_secs_f64();
    format!(
        "{rule}\nSettings:\n{rule}\nIterating {} times\nLoading {}:{}\nRunning for {duration}s each iteration\n\
         Using {} workers\n{rule}\n",
        settings.tries, settings.host, settings.port, settings.workers
    )
}

fn block(sample: &Sample, number: usize, all: usize) -> String {
    let (double, single) = ("=".repeat(RULE), "-".repeat(RULE));
    let kilobytes = |bytes: u64| i128::from(bytes / 1024);
    let (before, after) = (kilobytes(sample.memory_before.rss_bytes), kilobytes(sample.memory.rss_bytes));
    let load = sample.load.as_ref();
    let rate = load.map_or(0.0, |load| load.rate);
    let worst = load.and_then(|load| load.latency).and_then(|latency| latency.worst_us);
    let worst = worst.map_or_else(|| "unknown".to_owned(), |us| format!("{:.4} secs", us as f64 / 1e6));
    format!(
        "{double}\nIteration: {number} of {all}\n{single}\nRequests/sec: {rate:.4}\nLatency (worst case): {worst}\n{single}\n\
         Starting memory: {before} KB\nEnding memory: {after} KB\nMemory leaked: {} KB\n",
        after - before
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;
    use mallow_samples::soak as sample;

    #[test]
    fn the_lines_are_the_scripts() {
        let mut report = sample::leaking();
        report.samples.truncate(6);
        let settings = Settings {
            host: "127.0.0.1".into(),
            port: 3030,
            duration: Duration::from_secs(3),
            workers: 100,
            tries: 2,
        };
        assert_snapshot!(text(&report, Some(&settings)));
    }
}
