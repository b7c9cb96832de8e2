//! A log of garbage collections as it was judged.

use crate::Weight;
use mallow_growth::{Conclusion, Evidence, Finding, Observation, Trend, Verdict};

/// A slot of Ruby's heap on 64 bits. Since Ruby 3.2 larger ones exist, so this is a lower bound.
pub const SLOT_BYTES: u64 = 40;

/// What the lines run over. Only requests can be compared between programs.
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
    /// Those behind full collections: what they count lives.
    Full,
    /// Those behind any collection; old garbage may be among what they count.
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

/// A log as it was judged.
#[derive(Clone, Debug)]
pub struct GcReport {
    /// The log's path.
    pub file: String,
    /// What the lines run over.
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
    /// What the judge saw.
    pub evidence: Evidence,
    /// What it said.
    pub conclusion: Conclusion,
    /// What could not be read.
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

    /// Where an observation lies, as people read it: requests, seconds, collections.
    pub fn across(&self, seen: &Observation) -> f64 {
        match self.axis {
            Axis::Seconds => seen.requests as f64 / 1_000.0,
            Axis::Requests(_) | Axis::Collections => seen.requests as f64,
        }
    }

    /// What the verdict means to a script.
    pub fn weight(&self) -> Weight {
        match self.conclusion.verdict {
            Verdict::Leaking | Verdict::Mappings | Verdict::GrowsWhenIdle => Weight::Failed,
            Verdict::Inconclusive | Verdict::Invalid => Weight::Inconclusive,
            Verdict::Clean | Verdict::Plateau | Verdict::Retention | Verdict::Fragmentation => Weight::Fine,
        }
    }
}
