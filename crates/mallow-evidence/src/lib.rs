//! What a soak found, as data: what was seen at each look ([`Sample`]), how that becomes the [`Evidence`] of a verdict
//! ([`evidence()`]), and everything together ([`SoakReport`]).
//!
//! The crate runs nothing and opens nothing: `mallow-soak` has the server, the load and the clock, `mallow-growth` the verdict,
//! which knows no server. A journal is read here from its text ([`JournalRead`]), so a soak of yesterday is judged as one of today.
//!
//! To read in this order: `sample.rs`, `evidence.rs`, `report.rs`, `journal.rs`.
//!
//! [`Evidence`]: mallow_growth::Evidence

mod evidence;
mod journal;
mod progress;
mod report;
mod sample;

pub use evidence::{evidence, of_samples, only_refusals, replaced};
pub use journal::{JournalError, JournalHead, JournalRead, SCHEMA};
pub use progress::Progress;
pub use report::{Comparison, Growth, HeapSnapshots, MappingGrowth, Series, SoakReport, Unrecorded};
pub use sample::{
    AllocatorMetrics, HeapMetrics, LatencyMetrics, LoadMetrics, Memory, Phase, RuntimeMetrics, Sample,
};
