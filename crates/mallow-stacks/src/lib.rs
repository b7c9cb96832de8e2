//! Stacks with weights: the part of a profile that does not depend on what is counted.
//!
//! A heap profile weighs stacks by allocations and bytes, a CPU profile by samples and time. The stacks are the
//! same: calls of functions in modules, each with its caller. Which stacks of two builds match does not depend
//! on what is counted either, except that equal metrics are a hint.
//!
//! This crate must never name a metric: a set of metrics implements [`Metric`] and [`Weights`]. It knows no
//! files and must never do I/O.
//!
//! In reading order:
//! - [`Stacks`]: modules, locations and nodes, and their ids; [`StacksBuilder`] builds them without duplicates.
//! - [`Weights`], [`Metric`], [`Unit`]: a set of metrics.
//! - [`Site`], [`StackProfile`]: stacks with their weights.
//! - [`Diff`]: what changed between two profiles.
//! - [`Flames`]: stacks merged into boxes, one for each function; [`Recursion`]: which frames are merged.

mod builder;
mod cut;
mod diff;
mod flames;
mod model;
mod recursion;
mod redact;
mod weights;

pub use builder::StacksBuilder;
pub use diff::{Diff, DiffEntry, DiffSite, DiffSites, Level, Rename, SiteIndices, common_name, totals_of};
pub use flames::{
    FlameBox, FlameCall, FlameFunction, FlameFunctionId, FlamePlaceId, FlameTotal, FlameWeight, Flames,
};
pub use model::{
    Address, Location, LocationId, Module, ModuleId, ProcessIndex, Site, SiteList, StackId, StackNode, Stacks,
};
pub use recursion::{FoldedCall, Recursion};
pub use redact::{base_name, without_folders};
pub use weights::{Metric, MetricOf, StackProfile, Unit, Weights};
