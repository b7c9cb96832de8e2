//! A log of garbage collections as it was judged.

use crate::Weight;
use mallow_growth::{Conclusion, Evidence, Finding, Observation, Trend, Verdict};

/// A slot of Ruby's heap on 64 bits. Since Ruby 3.2 larger ones exist, so this is a lower bound.
pub const SLOT_BYTES: u64 = 40;

/// The x axis of the lines. Only requests can be compared between programs.
#[derive(Clone, Debug, PartialEq)]
pub enum Axis {
    /// The column of that name.
    Requests(String),
    /// Seconds since the first line.
    Seconds,
    /// Collections, or lines.
    Collections,
}

impl Axis {
    /// Growth for so many units is what people read: a request, an hour, a collection.
    pub fn scale(&self) -> f64 {
        match self {
            Axis::Seconds => 3_600_000.0,
            Axis::Requests(_) | Axis::Collections => 1.0,
        }
    }

    /// `request`, `hour`, `collection`.
    pub fn unit(&self) -> &'static str {
        match self {
            Axis::Requests(_) => "request",
            Axis::Seconds => "hour",
            Axis::Collections => "collection",
        }
    }
}

/// Which lines are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JudgedLines {
    /// Those after full collections: what they count is live.
    Full,
    /// Those after any collection; they may count old garbage.
    Swept,
    /// All of them; garbage is among what they count.
    All,
}

/// The column of resident memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResidentColumn {
    /// Its name.
    pub name: String,
    /// Whether it is in KiB, and not in bytes.
    pub is_in_kib: bool,
    /// Whether it is a peak, which never falls.
    pub is_peak: bool,
}

/// A judged log.
#[derive(Clone, Debug)]
pub struct GcReport {
    /// The log's path.
    pub file: String,
    /// The x axis.
    pub axis: Axis,
    /// Which of them are judged.
    pub lines: JudgedLines,
    /// How many lines the log has.
    pub lines_total: usize,
    /// The column that counts objects.
    pub slots_column: String,
    /// Resident memory's column, if there is one.
    pub resident: Option<ResidentColumn>,
    /// Seconds from the first line to the last.
    pub seconds: Option<f64>,
    /// The evidence.
    pub evidence: Evidence,
    /// The conclusion.
    pub conclusion: Conclusion,
    /// Warnings about lines that could not be parsed.
    pub warnings: Vec<String>,
}

impl GcReport {
    /// The course of objects, in bytes.
    pub fn objects(&self) -> Trend {
        self.conclusion.managed.or(self.conclusion.heap).unwrap_or_default()
    }

    /// Bytes of objects at an observation.
    pub fn objects_at(seen: &Observation) -> u64 {
        seen.managed_bytes.or(seen.live_bytes).unwrap_or(0)
    }

    /// Returns whether objects are what grows.
    pub fn is_managed(&self) -> bool {
        self.conclusion.findings.iter().any(|finding| matches!(finding, Finding::Managed { .. }))
    }

    /// Returns the x value of an observation, for people: requests, seconds, collections.
    pub fn across(&self, seen: &Observation) -> f64 {
        match self.axis {
            Axis::Seconds => seen.requests as f64 / 1_000.0,
            Axis::Requests(_) | Axis::Collections => seen.requests as f64,
        }
    }

    /// Returns the exit status of the verdict.
    pub fn weight(&self) -> Weight {
        match self.conclusion.verdict {
            Verdict::Leaking | Verdict::Mappings | Verdict::GrowsWhenIdle => Weight::Failed,
            Verdict::Inconclusive | Verdict::Invalid => Weight::Inconclusive,
            Verdict::Clean | Verdict::Plateau | Verdict::Retention | Verdict::Fragmentation => Weight::Fine,
        }
    }
}
