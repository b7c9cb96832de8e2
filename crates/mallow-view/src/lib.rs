//! The rows that every front end shows: plain data computed from a profile.
//!
//! A terminal, a web page and a JSON document show the same sites in the same order with the same names; this crate
//! decides which, and returns rows of plain data. It knows no colours, no columns, no JSON, and must never do I/O.
//!
//! - [`plumbing`]: which frames allocate on behalf of their caller.
//! - [`Sites`]: sites merged, filtered and sorted by a [`Key`].
//! - [`SortKey`], [`Point`]: other sort keys, and averages and rates of a site.
//! - [`Subject`], [`ReportOptions`]: what a report is about, and which part of it is shown; [`EventReport`]: the same for events.
//! - [`tree`]: sites as a call tree; [`functions`]: each function's self and total weight; [`peek()`]: its callers and
//!   callees; [`annotated`]: its lines.
//! - [`CpuOptions`]: which part of a CPU profile is shown.
//! - [`SuppressedLeaks`]: the leaks that suppressions removed.
//! - [`Summary`]: the few metrics that a person wants when a program ends, and which report to read next.
//! - [`diff`]: what changed between two profiles.
//! - [`check`]: results of allocation tests.
//! - [`soak`]: results of a leak test under load.
//! - [`heap`]: contents of a heap snapshot.
//! - [`gc_log`]: results of a log of garbage collections.
//! - [`Weight`]: the exit status of a result.
//! - [`flames()`], [`compared_flames()`]: whole stacks, outermost call first, for flame graphs; [`folded()`]: folded stacks.
//! - [`timeline`], [`window`], [`histogram`], [`threads`], [`chains`], [`short_lived`], [`leaks`]: analyses of single events.
//! - [`allocator_rows`]: an allocator's statistics, in plain words.
//! - [`Programs`]: the programs that ran, the most important first.
//! - [`Spread`]: a metric over several runs.
//! - [`ScriptFrames`]: a script's lines, with or without the interpreter's frames.
//! - [`short_name`] and [`place`]: how a frame is printed; [`cut()`]: truncates a long stack.

mod allocator;
mod annotate;
pub mod chains;
pub mod check;
mod cpu;
mod cut;
mod dense;
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
pub use mallow_frames::{home, name_sources_by, place, place_here, plumbing, short_name, telling_path};
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
