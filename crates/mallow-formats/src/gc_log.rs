//! Logs of Ruby's gc_tracer gem: what the collector counted at each of its events, line by line.
//!
//! Format: the gem's `ext/gc_tracer/gc_logging.c`. The first line names the columns; columns are separated by tabs,
//! with one at the end of each line. `type` and `tick` come first, then the keys of `GC.stat` and `GC.latest_gc_info`
//! of the Ruby that the gem was built for, then resource usage and fields of the user's own, each if it was
//! requested. So columns are found by name, never by number, and in any order. Lines that a killed process did not
//! finish are counted and not used.

mod columns;

pub use columns::{Choice, ResidentUnit};

use columns::Columns;
pub(crate) use columns::is_header;

/// Why a log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum GcLogError {
    /// The first line does not name columns.
    #[error(
        "this is no gc_tracer log: its first line should name columns separated by tabs, `type` and `tick` among them"
    )]
    NoHeader,
    /// A required column is missing.
    #[error("the log has no column `{name}`{}", hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default())]
    NoColumn {
        /// Its name.
        name: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// A line does not match the header.
    #[error("line {line} of the log makes no sense: {expected} was expected in column `{column}`")]
    Damaged {
        /// The line, counted from 1.
        line: u64,
        /// The column's name.
        column: String,
        /// What was expected.
        expected: &'static str,
    },
    /// The log has only a header.
    #[error("the log has no line behind its header; tracing ended before the first collection")]
    Empty,
}

/// The event of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcEvent {
    /// A collection begins.
    Start,
    /// Live objects are marked.
    EndMark,
    /// All others are swept: what is counted now is live.
    EndSweep,
    /// Any other: the collector's entry and exit, single objects, the user's own event.
    Other,
}

/// The unit of `tick`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    /// Microseconds since 1970, the default.
    UnixMicros,
    /// Seconds since 1970, as scripts convert it for gnuplot.
    UnixSeconds,
    /// Nanoseconds of a clock, or a CPU counter; the log does not say which.
    Unknown,
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GcRow {
    /// The event.
    pub event: GcEvent,
    /// Whether the collection was a full one; `None` if the log does not say.
    pub is_major: Option<bool>,
    /// `tick` as in the file.
    pub tick: f64,
    /// Collections so far.
    pub collections: Option<u64>,
    /// Slots of the heap that hold an object.
    pub live_slots: u64,
    /// Resident memory.
    pub resident_bytes: Option<u64>,
    /// Requests so far.
    pub requests: Option<u64>,
}

/// A log.
#[derive(Clone, Debug, PartialEq)]
pub struct GcLog {
    /// The unit of `tick`.
    pub tick: Tick,
    /// The column of live slots.
    pub slots_column: String,
    /// The column of resident memory, its unit, and whether it is a peak: `ru_maxrss` never falls.
    pub resident: Option<(String, ResidentUnit, bool)>,
    /// The column of requests.
    pub requests_column: Option<String>,
    /// The lines, in their order.
    pub rows: Vec<GcRow>,
    /// Warnings about what is missing or doubtful, as sentences.
    pub warnings: Vec<String>,
}

impl GcLog {
    /// Returns the time of a row in seconds since the first one; `None` if the unit of `tick` is unknown.
    pub fn seconds(&self, row: &GcRow) -> Option<f64> {
        let first = self.rows.first()?.tick;
        match self.tick {
            Tick::UnixMicros => Some((row.tick - first) / 1e6),
            Tick::UnixSeconds => Some(row.tick - first),
            Tick::Unknown => None,
        }
    }
}

/// Parses a log.
///
/// # Errors
/// See [`GcLogError`].
pub fn read(bytes: &[u8], choice: &Choice) -> Result<GcLog, GcLogError> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.lines().zip(1_u64..);
    let header = lines.next().map_or("", |(line, _)| line);
    let columns = Columns::of_header(header, choice)?;
    let mut log = GcLog {
        tick: Tick::Unknown,
        slots_column: columns.slots.name.clone(),
        resident: None,
        requests_column: columns.requests.as_ref().map(|column| column.name.clone()),
        rows: Vec::new(),
        warnings: Vec::new(),
    };
    let mut cut = 0_u64;
    for (line, number) in lines.filter(|(line, _)| !line.trim().is_empty()) {
        // A second process that was started with the same file writes the header again.
        if line == header {
            log.warnings.push(format!("Line {number} names the columns again: what stands before it belongs to another process and is left out."));
            log.rows.clear();
            continue;
        }
        match columns.row(line, number)? {
            Some(row) => log.rows.push(row),
            None => cut += 1,
        }
    }
    finish(&mut log, &columns, choice, cut)?;
    Ok(log)
}

fn finish(log: &mut GcLog, columns: &Columns, choice: &Choice, cut: u64) -> Result<(), GcLogError> {
    let Some(last) = log.rows.last() else { return Err(GcLogError::Empty) };
    log.tick = tick_of(last.tick);
    if cut > 0 {
        let lines = if cut == 1 { "1 line has" } else { &format!("{cut} lines have") };
        let were = if cut == 1 { "was" } else { "were" };
        log.warnings.push(format!("{lines} fewer columns than the header and {were} left out: the process was killed, or two wrote at once."));
    }
    log.resident = columns.finish_resident(&mut log.rows, choice);
    if log.resident.is_none() {
        let names = columns::RESIDENT_NAMES.join(", ");
        log.warnings.push(format!("The log has no column of resident memory ({names}); trace with rusage: true, or with a custom field rss."));
    }
    Ok(())
}

/// Recognises the unit by the size of the number: times of this century in microseconds have 15 or 16 digits, in
/// seconds 9 or 10. Nanoseconds of a clock would reach the former after eleven days, so microseconds have to be later
/// than 2001, too.
fn tick_of(tick: f64) -> Tick {
    const YEAR_2001: f64 = 978_307_200.0;
    const YEAR_2100: f64 = 4_102_444_800.0;
    match tick {
        _ if (YEAR_2001..YEAR_2100).contains(&tick) => Tick::UnixSeconds,
        _ if (YEAR_2001..YEAR_2100).contains(&(tick / 1e6)) => Tick::UnixMicros,
        _ => Tick::Unknown,
    }
}

#[cfg(test)]
#[path = "gc_log/tests.rs"]
mod tests;
