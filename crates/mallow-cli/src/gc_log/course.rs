//! From a log to evidence and a judgement: which lines count, and what they run over.

use mallow_formats::gc_log::{GcEvent, GcLog, GcRow, ResidentUnit};
use mallow_growth::{Evidence, Finding, Judgement, Observation, Rules, Trend, judge};

/// A slot of Ruby's heap on 64 bits. Since Ruby 3.2 larger ones exist, so this is a lower bound.
pub(crate) const SLOT_BYTES: u64 = 40;

/// So many lines of full collections are enough to leave the others out.
const FULL_MIN: usize = 20;

/// What the lines run over. Only requests can be compared between programs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Axis {
    /// The column of that name.
    Requests(String),
    /// Seconds since the first line.
    Seconds,
    /// Collections, or lines.
    Collections,
}

impl Axis {
    /// Growth for so many units is what people read: a request, an hour, a collection.
    pub(crate) fn scale(&self) -> f64 {
        match self {
            Axis::Seconds => 3_600_000.0,
            Axis::Requests(_) | Axis::Collections => 1.0,
        }
    }

    /// `request`, `hour`, `collection`.
    pub(crate) fn unit(&self) -> &'static str {
        match self {
            Axis::Requests(_) => "request",
            Axis::Seconds => "hour",
            Axis::Collections => "collection",
        }
    }

    /// From where on growth is growth, in the units that the judge sees: requests, milliseconds, collections.
    fn rules(&self) -> Rules {
        let rules = Rules::default();
        let per_ms = rules.idle_per_hour_min / 3_600_000.0;
        let (objects, resident) = match self {
            Axis::Requests(_) => return rules,
            Axis::Seconds => (per_ms, per_ms),
            // One object, and one page.
            Axis::Collections => (SLOT_BYTES as f64, 4_096.0),
        };
        Rules { heap_per_request_min: objects, resident_per_request_min: resident, ..rules }
    }
}

/// Which lines are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    /// Those behind full collections: what they count lives.
    Full,
    /// Those behind any collection; old garbage may be among what they count.
    Swept,
    /// All of them; garbage is among what they count.
    All,
}

/// A log as it was judged.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    pub(crate) file: String,
    pub(crate) axis: Axis,
    pub(crate) lines: Lines,
    pub(crate) lines_total: usize,
    pub(crate) slots_column: String,
    pub(crate) resident: Option<(String, ResidentUnit, bool)>,
    pub(crate) seconds: Option<f64>,
    pub(crate) evidence: Evidence,
    pub(crate) judgement: Judgement,
    pub(crate) warnings: Vec<String>,
}

impl Course {
    /// Judges a log.
    pub(crate) fn of(file: &str, log: &GcLog) -> Course {
        let (lines, rows) = judged_rows(log);
        let axis = axis(log, &rows);
        let observation = |(index, row): (usize, &&GcRow)| {
            let objects = Some(row.live_slots.saturating_mul(SLOT_BYTES));
            Observation {
                requests: place(log, &axis, index, row),
                seconds: log.seconds(row).unwrap_or(0.0),
                // What was not fully collected is an upper bound, and judged as such.
                live_bytes: if lines == Lines::Full { None } else { objects },
                managed_bytes: if lines == Lines::Full { objects } else { None },
                resident_bytes: row.resident_bytes.unwrap_or(0),
                ..Observation::default()
            }
        };
        let observations = rows.iter().enumerate().map(observation).collect();
        let evidence = Evidence { observations, uncollected: lines != Lines::Full, ..Evidence::default() };
        Course {
            file: file.to_owned(),
            judgement: judge(&evidence, &axis.rules()),
            lines,
            lines_total: log.rows.len(),
            slots_column: log.slots_column.clone(),
            resident: log.resident.clone(),
            seconds: log.rows.last().and_then(|last| log.seconds(last)),
            evidence,
            axis,
            warnings: log.warnings.clone(),
        }
    }

    /// The course of objects, in bytes.
    pub(crate) fn objects(&self) -> Trend {
        self.judgement.managed.or(self.judgement.heap).unwrap_or_default()
    }

    /// Bytes of objects at an observation.
    pub(crate) fn objects_at(seen: &Observation) -> u64 {
        seen.managed_bytes.or(seen.live_bytes).unwrap_or(0)
    }

    /// Whether objects are what grows.
    pub(crate) fn is_managed(&self) -> bool {
        self.judgement.findings.iter().any(|finding| matches!(finding, Finding::Managed { .. }))
    }

    /// Where an observation lies, as people read it: requests, seconds, collections.
    pub(crate) fn across(&self, seen: &Observation) -> f64 {
        match self.axis {
            Axis::Seconds => seen.requests as f64 / 1_000.0,
            Axis::Requests(_) | Axis::Collections => seen.requests as f64,
        }
    }
}

/// The lines that tell most: those behind full collections, or behind any, or all.
fn judged_rows(log: &GcLog) -> (Lines, Vec<&GcRow>) {
    let swept: Vec<&GcRow> = log.rows.iter().filter(|row| row.event == GcEvent::EndSweep).collect();
    let full: Vec<&GcRow> = swept.iter().copied().filter(|row| row.is_major == Some(true)).collect();
    if full.len() >= FULL_MIN {
        (Lines::Full, full)
    } else if swept.len() >= FULL_MIN {
        (Lines::Swept, swept)
    } else {
        (Lines::All, log.rows.iter().collect())
    }
}

fn axis(log: &GcLog, rows: &[&GcRow]) -> Axis {
    let counted = |row: Option<&&GcRow>| row.and_then(|row| row.requests).unwrap_or(0);
    match &log.requests_column {
        Some(column) if counted(rows.last()) > counted(rows.first()) => Axis::Requests(column.clone()),
        _ if log.rows.first().and_then(|row| log.seconds(row)).is_some() => Axis::Seconds,
        _ => Axis::Collections,
    }
}

fn place(log: &GcLog, axis: &Axis, index: usize, row: &GcRow) -> u64 {
    match axis {
        Axis::Requests(_) => row.requests.unwrap_or(0),
        // Not a number and what lies before the first line become 0.
        Axis::Seconds => (log.seconds(row).unwrap_or(0.0) * 1_000.0) as u64,
        Axis::Collections => row.collections.unwrap_or(index as u64),
    }
}
