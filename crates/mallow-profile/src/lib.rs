//! The model of a program's memory, and every analysis of it.
//!
//! A [`Profile`] is what all reports, diffs and exports are made from, whatever the data came from: our own
//! trace or another tool's file. A [`Fold`] makes one process's part of it, event by event, in memory bounded
//! by live blocks and distinct stacks; the collector runs it while the program runs, and the trace reader
//! runs the same code over stored events.
//!
//! This crate knows no files, no bytes, and not where symbols came from. It must never do I/O.

mod allocator;
pub mod analysis;
mod builder;
mod diff;
mod figures;
mod fold;
mod measure;
mod model;
mod region;
mod suppressions;

pub use allocator::{Allocator, AllocatorFigures, AllocatorState, Arena, Bin};
pub use builder::ProfileBuilder;
pub use diff::{Diff, DiffEntry, DiffSite, Level, Rename};
pub use figures::{COUNTING_VERSION, Known, SiteTotals, Totals};
pub use fold::{
    BlockId, Fold, Folded, FoldedSite, FoldedThread, LiveSite, MemoryAdvice, ReallocBooking, ThreadIndex,
};
pub use measure::Measure;
pub use model::{
    Address, Exit, Imported, LiveSample, Location, LocationId, Module, ModuleId, Process, ProcessIndex,
    Profile, Recording, Sample, Site, StackId, StackNode, Thread, TimeUnit,
};
pub use region::{RegionFigures, RegionTotals, Regions};
pub use suppressions::{SuppressedSite, Suppression, SuppressionError, suppress_leaks};
