//! Snapshots of managed heaps: every object with its class, its size and its references.
//!
//! A Ruby dump, a V8 snapshot, a JVM dump and one of CPython are the same thing once they are read: a [`Graph`] of objects. What retains
//! them is told by its [`DominatorTree`]: an object's retained size is what would be freed with it.
//!
//! This crate must never read a file, nor know how a format spells anything; `mallow-formats` fills the graph. It runs nothing in
//! parallel: a page in a browser asks the same questions.
//!
//! In the order of reading:
//! - [`Graph`]: objects in columns, references in one array, names once; [`GraphParts`] is how a reader hands them over.
//! - [`AddressIndex`]: which object lies at an address.
//! - [`DominatorTree`]: who keeps whom alive, and how much.
//! - [`Snapshot`]: the graph with what else its file told.
//! - [`Totals`]: sums by kind, class, site and generation.
//! - [`Paths`], [`referrers`]: why an object is alive.
//! - [`Histogram`]: how many objects each class has, for which no graph is needed.
//! - [`diff()`], [`Growth`]: what changed between snapshots; [`held_growth`]: who holds what grew.

mod address_index;
mod diff;
mod dominator_tree;
mod dominators;
mod graph;
mod growth;
mod held;
mod histogram;
mod names;
mod paths;
mod sizes;
mod snapshot;
mod totals;

pub use address_index::AddressIndex;
pub use diff::{ClassChange, Grown, HeapDiff, Identity, NewObjects, diff};
pub use dominator_tree::DominatorTree;
pub use graph::{
    Class, ClassId, Edge, EdgeLabel, Generation, Graph, GraphParts, KindId, ObjectId, Root, Runtime, Site,
    SiteId,
};
pub use growth::{ClassSeries, Growth, HeapGrowth};
pub use held::{Dominated, HeldGrowth, held_growth};
pub use histogram::Histogram;
pub use names::{NameId, Names};
pub use paths::{Paths, Referrer, referrers};
pub use sizes::Sizes;
pub use snapshot::{DuplicateString, DuplicateStrings, Snapshot, TEXT_CHARS_MAX};
pub use totals::{Group, Sum, Totals, generation_sums, sum_of};
