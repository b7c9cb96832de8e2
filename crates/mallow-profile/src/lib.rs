//! The model of a program's heap: its metrics, and every analysis of them.
//!
//! All reports, diffs and exports are made from a [`Profile`], whichever file the data came from: our own
//! trace or another tool's. An [`Aggregator`] computes one process's part of it, event by event, in memory bounded
//! by live blocks and distinct stacks; the collector runs it while the program runs, and the trace reader
//! runs the same code over stored events.
//!
//! This crate knows no files, no bytes, and not where symbols came from. It must never do I/O.

mod accesses;
mod aggregator;
mod allocator;
pub mod analysis;
mod builder;
mod event_sink;
pub mod left_out;
mod lost;
mod mapped;
mod measure;
mod metrics;
mod model;
mod redact;
mod region;
mod requests;
mod suppressions;

pub use accesses::{ByteAccesses, SiteAccesses};
pub use aggregator::{
    Aggregator, BlockId, Ended, LiveSite, MemoryAdvice, ReallocAttribution, SiteSummary, Summary,
    ThreadIndex, ThreadSummary,
};
pub use allocator::{Allocator, AllocatorMetrics, AllocatorState, Arena, Bin};
pub use builder::ProfileBuilder;
pub use event_sink::EventSink;
pub use lost::EventsLost;
pub use mallow_stacks::{
    Address, Diff, DiffEntry, Level, Location, LocationId, Module, ModuleId, ProcessIndex, Rename, SiteList,
    StackId, StackNode, Stacks,
};
pub use mapped::MappedMemory;
pub use measure::Measure;
pub use metrics::{Availability, COUNTING_VERSION, COUNTING_VERSION_MAPPINGS, SiteTotals, Totals};
pub use model::{
    EarlyEnds, Exit, Imported, LiveSample, MappedCode, Nameless, Process, Profile, Recording, Sample, Site,
    Thread, TimeUnit,
};
pub use region::{RegionMetrics, RegionTotals, Regions};
pub use requests::{Request, RequestTotals, Requested, Requests, SiteRequests};
pub use suppressions::{
    KNOWN_LEAKS, LibraryLeak, SuppressedSite, Suppression, SuppressionError, known_leaks, suppress_leaks,
};

/// A site of one of the runs.
pub type DiffSite<'a> = mallow_stacks::DiffSite<'a, SiteTotals>;
