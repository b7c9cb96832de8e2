//! What every front end shows: plain rows made from a profile.
//!
//! A terminal, a web page and a JSON document show the same sites in the same order with the same names; this crate
//! decides which, and hands out rows of plain data. It knows no colours, no columns, no JSON, and must never do I/O.
//!
//! - [`plumbing`]: which frames only carry an allocation on behalf of their caller.
//! - [`Sites`]: sites merged, filtered and sorted by a [`Key`].
//! - [`SortKey`], [`Point`]: what else sites can be sorted by, and averages and rates of a site.
//! - [`Subject`], [`ReportOptions`]: what a report is about, and which part of it is shown; [`EventReport`]: the same of events.
//! - [`tree`]: sites as a tree of calls; [`functions`]: each function's own weight and that with its callees; [`peek()`]: its callers and
//!   callees; [`annotated`]: its lines.
//! - [`CpuOptions`]: what is shown of a processor's time.
//! - [`SuppressedLeaks`]: what suppressions took from the leaks.
//! - [`Summary`]: the few metrics that a person wants when a program ends, and what to look at next.
//! - [`diff`]: what changed between two profiles.
//! - [`check`]: what allocation tests came to.
//! - [`soak`]: what a leak test under load came to.
//! - [`heap`]: what lies in a managed heap.
//! - [`gc_log`]: what a log of garbage collections came to.
//! - [`Weight`]: what a result means to a script.
//! - [`flames()`], [`compared_flames()`]: whole stacks, outermost call first, for flame graphs; [`folded()`]: the same for other tools.
//! - [`timeline`], [`window`], [`histogram`], [`threads`], [`chains`], [`short_lived`], [`leaks`]: what single events tell.
//! - [`allocator_rows`]: what an allocator says of itself, in plain words.
//! - [`Programs`]: what ran, those that matter first.
//! - [`Spread`]: a metric over several runs.
//! - [`ScriptFrames`]: a script's lines, with or without the interpreter that runs them.
//! - [`short_name`] and [`place`]: how a frame is written; [`cut()`]: which frames of a long stack.

mod allocator;
mod annotate;
pub mod chains;
pub mod check;
mod cpu;
mod cut;
pub mod diff;
mod drawn;
mod events;
pub mod filter;
mod flames;
mod folded;
mod functions;
pub mod gc_log;
pub mod heap;
pub mod histogram;
mod key;
pub mod leaks;
mod lines;
mod looks;
mod own_frames;
mod part;
mod peek;
mod places;
mod points;
mod processes;
mod report;
mod script_frames;
pub mod short_lived;
mod shown;
mod sites;
pub mod soak;
mod spread;
mod summary;
mod suppressions;
pub mod threads;
pub mod timeline;
mod tops;
mod tree;
mod waits;
mod weight;
pub mod window;

pub use allocator::{AllocatorRow, allocator_arenas, allocator_bins, allocator_notes, allocator_rows};
pub use annotate::{AnnotatedFunction, LineWeights, annotated};
pub use cpu::{CpuLayout, CpuOptions, ThreadRow, cpu_slices, cpu_threads};
pub use cut::{Piece, cut};
pub use events::{EventReport, ProcessTimeline, SiteOptions, TimelineRows};
pub use flames::{FlameOptions, compared_flames, flames};
pub use folded::{ComparedRow, FoldedRow, compared, folded};
pub use functions::{FunctionOrder, FunctionRow, functions};
pub use key::Key;
pub use lines::{Line, lines};
use mallow_frames::whole_place;
pub use mallow_frames::{home, place, plumbing, short_name};
pub use mallow_profile::Measure;
pub use own_frames::is_own;
pub use part::{PartOf, PartWindow};
pub use peek::{Peek, peek};
pub use places::PlaceRow;
pub use points::{Point, SortKey, rate_units};
pub use processes::{OtherPrograms, Programs, short_command};
pub use report::{Layout, Origin, ReportOptions, Subject, TreeLayout};
pub use script_frames::{ScriptFrames, without_interpreter};
pub use shown::FrameVisibility;
pub use sites::{Domain, Filter, SiteRow, Sites};
pub use spread::{Metric, MetricRow, Run, Spread, metric_rows};
pub use summary::{Next, Summary};
pub use suppressions::{AppliedSuppressions, SuppressedBy, SuppressedLeaks, SuppressionSource};
pub use tops::{Top, TopRow};
pub use tree::{Direction, Rest, TreeNode, TreeOptions, Under, tree};
pub use waits::{WaitRow, waits};
pub use weight::Weight;

#[cfg(test)]
mod cpu_tests;
#[cfg(test)]
mod example;
