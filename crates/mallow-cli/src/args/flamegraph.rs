//! `mallow flamegraph` as typed.

use super::LowSort;
use clap::Args;
use std::path::PathBuf;

/// `mallow flamegraph`.
#[derive(Debug, Args)]
pub(crate) struct LowFlamegraph {
    /// The trace, or another tool's profile
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// A later one: draw it, and colour what became more (red) or less (blue) than in FILE
    #[arg(value_name = "OTHER")]
    pub(crate) other: Option<PathBuf>,
    /// What the widths are (peak, or what the file knows)
    #[arg(long, value_name = "FIGURE")]
    pub(crate) measure: Option<LowSort>,
    /// Draw the outermost calls at the top
    #[arg(long)]
    pub(crate) icicle: bool,
    /// Print the stacks as text, one in a line, instead of drawing them
    #[arg(long)]
    pub(crate) folded: bool,
    /// Write to FILE instead of stdout
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite OUT if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Show allocator plumbing and the runtime's start too, and whole names
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
    /// The graph's first line
    #[arg(long, value_name = "TEXT", conflicts_with = "folded")]
    pub(crate) title: Option<String>,
}
