//! `mallow report` as typed.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `mallow report`.
#[derive(Debug, Args)]
pub(crate) struct LowReport {
    /// The trace that `mallow record` wrote
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Show the stacks of the top sites by one figure instead of a short table for each
    #[arg(long, value_name = "FIGURE")]
    pub(crate) sort: Option<LowSort>,
    /// Show at most N sites (5 in each short table, 10 with --sort, all in JSON)
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Show allocator plumbing, the runtime's start and deep stacks too, and whole names
    #[arg(long)]
    pub(crate) all_frames: bool,
    /// Only sites with TEXT in the name of a function on their stack
    #[arg(long, value_name = "TEXT")]
    pub(crate) function: Option<String>,
    /// Only sites with TEXT in the path of an executable or library on their stack
    #[arg(long, value_name = "TEXT")]
    pub(crate) module: Option<String>,
    /// Count a block that realloc made where realloc was called, or where the block was first allocated
    #[arg(long, value_name = "WHERE", default_value = "own")]
    pub(crate) realloc: LowRealloc,
    /// Print JSON (schema mallow.report/1)
    #[arg(long)]
    pub(crate) json: bool,
}

/// The figures to sort by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LowSort {
    /// Calls that allocated
    Allocations,
    /// Bytes they asked for
    Bytes,
    /// Bytes live when the process held most
    Peak,
    /// Bytes live at the end
    Leaked,
    /// Blocks freed before their thread allocated again
    Temporary,
}

/// Where `realloc`'s blocks count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LowRealloc {
    /// Where realloc was called
    Own,
    /// Where the block was first allocated, as valgrind's DHAT counts
    Origin,
}
