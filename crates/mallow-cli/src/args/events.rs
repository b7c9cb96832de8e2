//! The flags of `mallow report` that analyse single events.

use super::quantity::time_us;
use super::window::LowWindow;
use clap::Args;

/// What single events tell; each is shown instead of the tables over the whole recording.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Events over time")]
pub(crate) struct LowEvents {
    /// Show live memory, allocations and resident memory over time
    #[arg(long, conflicts_with_all = LAYOUTS)]
    pub(crate) timeline: bool,
    /// Show histograms of the sizes and lifetimes of blocks
    #[arg(long, conflicts_with_all = TABLES)]
    pub(crate) histogram: bool,
    /// Show what each thread allocated and freed
    #[arg(long, conflicts_with_all = LAYOUTS)]
    pub(crate) threads: bool,
    /// Show blocks that realloc resized, by where they were allocated first
    #[arg(long, conflicts_with_all = TABLES)]
    pub(crate) chains: bool,
    /// Show sites whose blocks were freed before their thread made N further allocations; 1 is what the counting rules call temporary
    #[arg(long, value_name = "N", conflicts_with_all = TABLES, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) temporary_within: Option<u64>,
    /// Show sites by the blocks that lived shorter than TIME, such as 1ms
    #[arg(long, value_name = "TIME", conflicts_with_all = TABLES, value_parser = time_us)]
    pub(crate) short_lived: Option<u64>,
    #[command(flatten)]
    pub(crate) window: LowWindow,
}

/// Flags that arrange metrics of the whole recording.
const TABLES: [&str; 6] = ["sort", "points", "tree", "per", "functions", "peek"];
/// The same without the metric, by which threads and time lines of mallow cpu are shown too.
const LAYOUTS: [&str; 5] = ["points", "tree", "per", "functions", "peek"];
