//! `mallow report` as typed.

use clap::{Args, ValueEnum};
use std::num::NonZeroU64;
use std::path::PathBuf;

/// Deeper trees could not be read as JSON by parsers that stop at 128 levels, of which a node takes two.
const DEPTH_MAX: u64 = 60;

/// `mallow report`.
#[derive(Debug, Args)]
pub(crate) struct LowReport {
    /// The trace that `mallow record` wrote, or another tool's profile
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Show the stacks of the top sites by one figure instead of a short table for each
    #[arg(long, value_name = "FIGURE")]
    pub(crate) sort: Option<LowKey>,
    /// Show all figures of each site, as DHAT does of its program points
    #[arg(long, conflicts_with = "tree")]
    pub(crate) points: bool,
    /// Show a tree: from the allocation outwards (callers), or from the start inwards (callees)
    #[arg(
        long,
        value_name = "WAY",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "callers"
    )]
    pub(crate) tree: Option<LowDirection>,
    /// Fold what is below this part of the whole tree [default: 1%]
    #[arg(long, value_name = "PERCENT", requires = "tree", value_parser = millionths)]
    pub(crate) threshold: Option<u32>,
    /// Follow at most N branches inwards, up to 60 [default: 16, 60 in JSON]
    #[arg(long, value_name = "N", requires = "tree", value_parser = clap::value_parser!(u64).range(1..=DEPTH_MAX))]
    pub(crate) depth: Option<u64>,
    /// Show at most N sites (5 in each short table, 10 with --sort, all in JSON), or N branches of a tree's node
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Divide by N, the number of operations that the program did
    #[arg(long, value_name = "N")]
    pub(crate) per: Option<NonZeroU64>,
    /// Take the leaks from the tables that FILE says are known: lines of leak:PATTERN, as for LeakSanitizer
    #[arg(long, value_name = "FILE")]
    pub(crate) suppressions: Vec<PathBuf>,
    /// Do not look for __lsan_default_suppressions in the recorded executable
    #[arg(long)]
    pub(crate) no_embedded_suppressions: bool,
    /// Show allocator plumbing, the runtime's start and deep stacks too, and whole names
    #[arg(long)]
    pub(crate) all_frames: bool,
    /// Take functions whose name matches PATTERN for plumbing too; * is any text, and it may be given several times
    #[arg(long, value_name = "PATTERN", conflicts_with = "all_frames")]
    pub(crate) plumbing: Vec<String>,
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
    #[command(flatten)]
    pub(crate) events: super::LowEvents,
}

/// What sites of a report can be sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LowKey {
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
    /// Allocations made by realloc
    Reallocations,
    /// Blocks live when the process held most
    PeakBlocks,
    /// Blocks live at the end
    LeakedBlocks,
    /// The site's own maximum of live bytes
    Max,
    /// The site's live blocks at that moment
    MaxBlocks,
    /// Average size of a block
    Size,
    /// Average time that a block lived
    Lifetime,
    /// Allocations per second
    Rate,
}

/// Which way a tree grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LowDirection {
    /// From the allocation outwards
    Callers,
    /// From the program's start inwards
    Callees,
}

/// The measures.
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

/// `1%` or `0.5` as millionths of the whole.
fn millionths(text: &str) -> Result<u32, String> {
    let percent: f64 =
        text.trim_end_matches('%').parse().map_err(|_| "a percentage was expected".to_owned())?;
    if (0.0..=100.0).contains(&percent) {
        Ok((percent * 10_000.0).round() as u32)
    } else {
        Err("a percentage from 0 to 100 was expected".to_owned())
    }
}
