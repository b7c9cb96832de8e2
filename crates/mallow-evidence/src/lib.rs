//! Results of a soak as data: each observation ([`Sample`]), the [`Evidence`] of a verdict computed from them
//! ([`evidence()`]), and the whole report ([`SoakReport`]).
//!
//! The crate runs nothing and opens nothing: `mallow-soak` runs the server, the load and the clock, and `mallow-growth` computes
//! the verdict and knows no server. This crate parses the text of a journal ([`JournalRead`]), so a soak of yesterday is judged like
//! one of today.
//!
//! In reading order: `sample.rs`, `evidence.rs`, `workers.rs`, `report.rs`, `journal.rs`.
//!
//! [`Evidence`]: mallow_growth::Evidence

mod evidence;
mod journal;
mod progress;
mod report;
mod sample;
mod workers;

pub use evidence::{evidence, of_samples, only_refusals, replaced};
pub use journal::{JournalError, JournalHead, JournalRead, SCHEMA};
pub use progress::Progress;
pub use report::{Comparison, Growth, HeapSnapshots, MappingGrowth, Series, SoakReport, Unrecorded};
pub use sample::{
    AllocatorMetrics, HeapMetrics, LatencyMetrics, LoadMetrics, Memory, Phase, ProcessHeap, RuntimeMetrics,
    Sample, Unread,
};
pub use workers::{WorkerLook, by_age};
