//! Queries of every front end: a terminal, a JSON document, a web page.
//!
//! It opens any file ([`ProfileFile`]), resolves symbols ([`Names`]), applies suppressions, and decides what has to be read for an
//! answer: which metric, which processes, which passes over events, and where leaks get a verdict. Answers are rows of
//! `mallow-view`. This crate must never record, print, or know how a query was typed.
//!
//! In reading order:
//! - [`ProfileFile`]: a heap profile from a file of any format; [`AnyFile`]: a profile of any kind;
//! - [`ProcessChoice`]: which of its processes; [`PartRequest`]: which part of its time, and which filter;
//! - [`ReportRequest`] and [`Report`]: what a report needs beside the profile, with [`EventOptions`] for what needs events;
//! - [`choose`]: the metric that all files have;
//! - [`gc_log`]: a log of garbage collections, and the evidence for a verdict;
//! - [`heap`]: a heap snapshot; [`explain`]: where the rest of the process's memory is.

mod addresses;
mod any_file;
mod debuginfod;
mod events;
pub mod explain;
mod exported;
mod failure;
mod filtered;
pub mod gc_log;
pub mod heap;
mod leaks;
mod metric;
mod named_files;
mod names;
mod part;
mod passes;
mod processes;
mod profile_file;
mod proportion;
mod report;
mod source_text;
mod suppressions;

pub use any_file::{AnyFile, CpuFile, CpuWindow, no_time};
pub use events::{EventOptions, Moment};
pub use failure::{Failure, reason};
pub use mallow_symbols::{OnAttempt, OtherRoots};
pub use metric::choose;
pub use named_files::{are_all_traces_believed, open_what_traces_name};
pub use names::{DebugPlaces, Names, ResolveAhead, look_in, look_up_in_child, look_up_with_patience};
pub use part::PartRequest;
pub use processes::ProcessChoice;
pub use profile_file::{ProfileFile, refused};
pub use report::{Detail, Report, ReportRequest};
pub use source_text::{WithSource, with_source};
pub use suppressions::SuppressionRequest;
