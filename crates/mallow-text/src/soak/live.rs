//! What is shown while a soak runs: a line for each observation, and on a terminal charts of heap and resident memory below.
//!
//! Its memory is bounded however long the run is.

use super::metrics::{phase, signed_size, small};
use crate::{Style, cut_end, grouped, printable};
use mallow_base::{Bytes, Count};
use mallow_evidence::Progress;
use mallow_evidence::{Phase, Sample};
use mallow_view::soak::heap_step;

/// The number of columns from which on optional columns are shown.
const WIDE: usize = 100;
/// The heading is repeated after this number of lines.
const HEAD_EVERY: u32 = 40;
/// The maximum number of values of a chart; beyond it, every two neighbours are merged.
const COURSE_MAX: usize = 512;
/// The minimum share of its level that a chart spans, so that noise does not look like growth.
const SPAN_MIN: f64 = 0.02;

/// The table, which grows line by line.
pub struct Live {
    style: Style,
    /// Whether lines can be redrawn.
    is_terminal: bool,
    lines: u32,
    last: Option<Sample>,
    heap: Phases,
    resident: Phases,
    /// The number of lines below the table that are redrawn.
    below: usize,
    doing: &'static str,
}

/// A metric over time; its resolution is reduced as it grows.
#[derive(Debug, Default)]
struct Phases {
    values: Vec<f64>,
    /// The number of observations that each value stands for.
    each: usize,
    waiting: Vec<f64>,
}

impl Live {
    /// Returns an empty table.
    pub fn new(style: Style, is_terminal: bool) -> Live {
        let (heap, resident) = (Phases::default(), Phases::default());
        Live { style, is_terminal, lines: 0, last: None, heap, resident, below: 0, doing: "" }
    }

    /// Returns what to print for a progress message; usually nothing.
    pub fn text(&mut self, progress: &Progress<'_>) -> String {
        let line = match progress {
            Progress::Phase(now) => {
                self.doing = doing(*now);
                String::new()
            }
            Progress::Note(note) => format!("{}\n", cut_end(&printable(note), self.style.width * 4)),
            Progress::Extended(more) => format!("undecided: {} iterations more\n", grouped(u64::from(*more))),
            Progress::Sample(sample) => self.sample(sample),
        };
        if !self.is_terminal {
            return line;
        }
        let above = self.erased();
        let below = self.courses();
        self.below = below.len();
        format!("{above}{line}{}", below.concat())
    }

    /// Erases what is below the table, for a report that follows.
    pub fn end(&mut self) -> String {
        let text = self.erased();
        self.below = 0;
        text
    }

    fn erased(&self) -> String {
        if self.below == 0 { String::new() } else { format!("\x1b[{}A\x1b[J", self.below) }
    }

    fn sample(&mut self, sample: &Sample) -> String {
        if self.is_told(sample) {
            return String::new();
        }
        let is_wide = self.style.width >= WIDE;
        let mut text = String::new();
        if self.lines.is_multiple_of(HEAD_EVERY) {
            text.push_str(&self.style.dim(&head(is_wide)));
            text.push('\n');
        }
        self.lines = self.lines.saturating_add(1);
        text.push_str(&line(self.last.as_ref(), sample, is_wide));
        text.push('\n');
        if let Some(heap) = sample.heap {
            self.heap.push(heap.live_bytes as f64);
        }
        if !sample.is_after_exit() {
            self.resident.push(sample.memory.rss_bytes as f64);
        }
        self.last = Some(sample.clone());
        text
    }

    /// Returns whether an idle observation shows the same as the one before.
    fn is_told(&self, sample: &Sample) -> bool {
        let Some(last) = self.last.as_ref().filter(|_| sample.phase == Phase::IdleControl) else {
            return false;
        };
        let shown = |sample: &Sample| line(None, &Sample { number: 0, ..sample.clone() }, false);
        last.phase == Phase::IdleControl && shown(last) == shown(sample)
    }

    fn courses(&self) -> Vec<String> {
        let mut lines: Vec<String> = [("heap", &self.heap), ("RSS", &self.resident)]
            .into_iter()
            .filter_map(|(name, phases)| phases.line(name, self.style.width))
            .map(|line| format!("{line}\n"))
            .collect();
        if !self.doing.is_empty() {
            lines.push(format!("{}\n", self.style.dim(self.doing)));
        }
        lines
    }
}

fn doing(now: Phase) -> &'static str {
    match now {
        Phase::Preflight => "looking at port and command",
        Phase::Start => "waiting until the server is ready",
        Phase::Idle => "idle, before the load",
        Phase::Burst => "burst, above the load that follows",
        Phase::WarmUp => "warm-up",
        Phase::Measured => "load",
        Phase::IdleControl => "idle, after the load",
        Phase::Snapshots => "two snapshots of the heap that grows, and load between them",
        Phase::Stop => "ending the server",
    }
}

/// Returns the headings of the columns; if there is room, also of the median and of memory after trimming.
fn head(is_wide: bool) -> String {
    let (p50, trimmed) = if is_wide { ("    p50", "   trimmed") } else { ("", "") };
    format!(
        "{:>3} {:<7}{:>8}{:>8}{p50}{:>7}{:>7}{:>5}{:>9}{:>7}{:>9}{trimmed}{:>5}{:>4}",
        "#", "phase", "requests", "req/s", "p99", "worst", "err", "heap", "B/req", "RSS", "fds", "thr"
    )
    .trim_end()
    .to_owned()
}

/// Formats one observation.
pub(crate) fn line(before: Option<&Sample>, sample: &Sample, is_wide: bool) -> String {
    let load = sample.load.as_ref();
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let latency = load.and_then(|load| load.latency);
    let requests = or_dash(load.map(|load| count(load.requests)));
    let rate = or_dash(load.map(|load| count(load.rate.max(0.0).round() as u64)));
    let p99 = or_dash(latency.map(|latency| short_time(latency.p99_us)));
    let worst = or_dash(latency.and_then(|latency| latency.worst_us).map(short_time));
    let errors = or_dash(load.map(|load| short_count(load.requests.saturating_sub(load.succeeded))));
    let heap = or_dash(sample.heap.map(|heap| Bytes(heap.live_bytes).to_string()));
    let step = before.and_then(|before| heap_step(before, sample));
    let step =
        or_dash(step.map(|bytes| if bytes.abs() < 99_999.0 { small(bytes) } else { signed_size(bytes) }));
    let living = |text: String| if sample.is_after_exit() { "-".to_owned() } else { text };
    let read = |text: String| if sample.unread.is_some() { "?".to_owned() } else { living(text) };
    let resident = read(Bytes(sample.memory.rss_bytes).to_string());
    let (mut p50, mut trimmed) = (String::new(), String::new());
    if is_wide {
        p50 = format!("{:>7}", or_dash(latency.map(|latency| short_time(latency.p50_us))));
        let after = sample.memory_trimmed.map(|memory| Bytes(memory.rss_bytes).to_string());
        trimmed = format!("{:>10}", or_dash(after));
    }
    format!(
        "{:>3} {:<7}{requests:>8}{rate:>8}{p50}{p99:>7}{worst:>7}{errors:>5}{heap:>9}{step:>7}{resident:>9}{trimmed}{:>5}{:>4}",
        sample.number,
        phase(sample.phase),
        read(count(sample.descriptors)),
        living(count(sample.threads)),
    )
}

/// Formats a count in at most seven columns.
fn count(value: u64) -> String {
    Count(value).to_string()
}

/// Formats `850`, `9.1k`, `312k`, `12M`: at most four columns.
fn short_count(value: u64) -> String {
    match value {
        0..1000 => value.to_string(),
        1000..9950 => format!("{:.1}k", value as f64 / 1e3),
        9950..999_500 => format!("{:.0}k", value as f64 / 1e3),
        _ => format!("{:.0}M", value as f64 / 1e6),
    }
}

/// Formats `850µs`, `9.1ms`, `312ms`, `1.2s`: at most five columns.
fn short_time(us: u64) -> String {
    match us {
        0..1000 => format!("{us}µs"),
        1000..9950 => format!("{:.1}ms", us as f64 / 1e3),
        9950..999_500 => format!("{:.0}ms", us as f64 / 1e3),
        999_500..9_950_000 => format!("{:.1}s", us as f64 / 1e6),
        _ => format!("{:.0}s", us as f64 / 1e6),
    }
}

impl Phases {
    fn push(&mut self, value: f64) {
        self.each = self.each.max(1);
        self.waiting.push(value);
        if self.waiting.len() < self.each {
            return;
        }
        self.values.push(mean(&self.waiting));
        self.waiting.clear();
        if self.values.len() >= COURSE_MAX {
            self.values = self.values.chunks(2).map(mean).collect();
            self.each *= 2;
        }
    }

    /// Formats `heap ▁▂▃▄ 2.01 MiB to 3.53 MiB`.
    fn line(&self, name: &str, width: usize) -> Option<String> {
        const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let (first, last) = (*self.values.first()?, *self.values.last()?);
        let most = self.values.iter().copied().fold(f64::MIN, f64::max);
        let least = self.values.iter().copied().fold(f64::MAX, f64::min);
        let span = (most - least).max(most * SPAN_MIN).max(1.0);
        let room = width.saturating_sub(30).max(8);
        let each = self.values.len().div_ceil(room).max(1);
        let levels: String = self
            .values
            .chunks(each)
            .map(|values| LEVELS[(((mean(values) - least) / span) * 7.0).round().clamp(0.0, 7.0) as usize])
            .collect();
        Some(format!("{name:>4} {levels} {} to {}", Bytes(first as u64), Bytes(last as u64)))
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

#[cfg(test)]
#[path = "live_tests.rs"]
mod tests;
