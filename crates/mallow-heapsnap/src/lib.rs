//! Heap snapshots of managed runtimes: every object with its class, its size and its references.
//!
//! Dumps of Ruby, V8, the JVM and CPython are the same once they are parsed: a [`Graph`] of objects. Its [`DominatorTree`] yields
//! retained sizes: an object's retained size is what would be freed with it.
//!
//! This crate must never read a file, nor know the syntax of a format; `mallow-formats` fills the graph. It starts no threads, so
//! that a page in a browser can run the same code.
//!
//! In reading order:
//! - [`Graph`]: objects in columns, references in one array, names once; a reader passes [`GraphParts`].
//! - [`AddressIndex`]: finds the object at an address.
//! - [`DominatorTree`]: which object keeps which alive, and how much.
//! - [`Snapshot`]: the graph with the other contents of its file.
//! - [`Totals`]: sums by kind, class, site and generation.
//! - [`Paths`], [`referrers`]: why an object is alive.
//! - [`Histogram`]: the number of objects per class, for which no graph is needed.
//! - [`diff()`], [`Growth`]: what changed between snapshots; [`held_growth`]: what retains the objects that were added.

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
