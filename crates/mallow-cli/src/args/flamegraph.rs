//! `mallow flamegraph` as typed.

use super::choice::{self, AnyMeasure};
use super::filter::{LowFilter, LowProcess};
use super::form::LowOutput;
use super::window::LowWindow;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// A flame graph shows stacks of any depth, so the help does not mention deep stacks.
const ALL_FRAMES: &str = "Show allocator plumbing and the runtime's start too, and whole names";

/// `mallow flamegraph`.
#[derive(Debug, Args)]
#[command(mut_arg("all_frames", |flag| flag.help(ALL_FRAMES)))]
pub(crate) struct LowFlamegraph {
    /// The trace, or another tool's profile (the newest profile in this folder)
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// A later profile: draw it, coloured by growth (red) or decrease (blue) since FILE
    #[arg(value_name = "OTHER")]
    pub(crate) other: Option<PathBuf>,
    /// The metric of the widths (peak, or the first that the file has)
    #[arg(long = "metric", alias = "measure", value_name = "METRIC", value_parser = choice::measure())]
    pub(crate) measure: Option<AnyMeasure>,
    /// Draw the outermost calls at the top
    #[arg(long)]
    pub(crate) icicle: bool,
    /// Draw every call of a recursion, instead of each function once with the number of its calls
    #[arg(long, conflicts_with = "folded")]
    pub(crate) unfold: bool,
    /// What to write
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value = "svg")]
    pub(crate) format: DrawnAs,
    /// Old name of --format folded
    #[arg(long, hide = true, conflicts_with = "format")]
    pub(crate) folded: bool,
    #[command(flatten)]
    pub(crate) output: LowOutput,
    #[command(flatten)]
    pub(crate) process: LowProcess,
    #[command(flatten)]
    pub(crate) filter: LowFilter,
    #[command(flatten)]
    pub(crate) window: LowWindow,
    /// The graph's first line
    #[arg(long, value_name = "TEXT", conflicts_with = "folded")]
    pub(crate) title: Option<String>,
}

impl LowFlamegraph {
    /// Returns the output format.
    pub(crate) fn form(&self) -> DrawnAs {
        if self.folded { DrawnAs::Folded } else { self.format }
    }
}

/// A drawing, or what it is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DrawnAs {
    /// A drawing with zoom and search, for a browser
    Svg,
    /// The stacks as text, one in a line
    Folded,
}
