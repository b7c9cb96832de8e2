//! Rows as text: tables, pages, charts, and the files that a CI server reads.
//!
//! Everything is built as a string first, so that a test sees exactly what a person sees. This crate decides nothing and measures
//! nothing, and must never do I/O nor know where its rows came from.
//!
//! In reading order:
//! - [`Style`] and the wording of metrics, names and frames, which every page shares;
//! - [`report`], [`events`], [`diff`], [`stat`], [`summary`], [`allocator`]: heap profiles;
//! - [`check`], [`soak`], [`gc_log`]: verdicts, each as text, and where it makes sense as Markdown and JUnit;
//! - [`mod@bench`]: benchmarks of commands;
//! - [`heap`]: a heap snapshot, an object, a class;
//! - [`cpu`]: CPU profiles;
//! - [`plot`] draws charts.

pub mod allocator;
pub mod bench;
pub mod check;
mod columns;
pub mod cpu;
pub mod diff;
pub mod events;
mod functions;
pub mod gc_log;
pub mod heap;
mod junit;
mod markdown;
pub mod plot;
pub mod report;
pub mod soak;
pub mod stat;
mod style;
pub mod summary;
mod wording;

pub use columns::{cut_end, cut_start, wrapped};
pub use mallow_base::grouped;
pub use style::{Style, WIDTH_DEFAULT};
pub use wording::{
    exit_text, frame_text, frame_with_caller, metric, part_words, plural, printable, shell_word, signal_name,
};
