//! Stacks with weights: what is true of any profile, whatever it counts.
//!
//! A profile of the heap weighs stacks by allocations and bytes, a profile of a processor by samples and time. The stacks are the
//! same: calls of functions in modules, each with its caller. Which stack of one build is which of another does not depend
//! on what is counted either, beyond metrics that agree.
//!
//! This crate must never name a metric: [`Metric`] and [`Weights`] say what a set of metrics has to tell of itself. It knows no
//! files and must never do I/O.
//!
//! In the order of reading:
//! - [`Stacks`]: modules, locations and nodes, and their ids; [`StacksBuilder`] makes them without doubles.
//! - [`Weights`], [`Metric`], [`Unit`]: a set of metrics.
//! - [`Site`], [`StackProfile`]: stacks with their weights.
//! - [`Diff`]: what changed between two profiles.
//! - [`Flames`]: stacks put together, a box for each function; [`Recursion`]: what is folded in them.

mod builder;
mod diff;
mod flames;
mod model;
mod recursion;
mod weights;

pub use builder::StacksBuilder;
pub use diff::{Diff, DiffEntry, DiffSite, Level, Rename, common_name};
pub use flames::{
    FlameBox, FlameCall, FlameFunction, FlameFunctionId, FlamePlaceId, FlameTotal, FlameWeight, Flames,
};
pub use model::{
    Address, Location, LocationId, Module, ModuleId, ProcessIndex, Site, StackId, StackNode, Stacks,
};
pub use recursion::{FoldedCall, Recursion};
pub use weights::{Metric, MetricOf, StackProfile, Unit, Weights};
