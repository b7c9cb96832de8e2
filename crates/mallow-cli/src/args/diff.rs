//! `mallow diff` as typed.

use super::choice::{self, AnyMeasure};
use super::filter::{LowExpression, LowFrames, LowProcess};
use super::form::{Form, LowForm};
use clap::{Args, ValueEnum};
use mallow_cpu::CpuMetric;
use mallow_profile::ReallocAttribution;
use mallow_view::diff::{Limit, LimitError, ShareLimit};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::str::FromStr;

/// The shown frames also decide which sites are compared.
const ALL_FRAMES: &str =
    "Compare and show allocator plumbing and the runtime's start too, deep stacks and whole names";

/// `mallow diff`.
#[derive(Debug, Args)]
#[command(mut_arg("all_frames", |flag| flag.help(ALL_FRAMES)))]
#[command(mut_arg("json", |flag| flag.help("Print JSON (schema mallow.diff/1): the same as --format json")))]
pub(crate) struct LowDiff {
    /// The earlier profile: a trace, or another tool's file (without both, the two newest profiles in this folder)
    #[arg(value_name = "BEFORE", requires = "after")]
    pub(crate) before: Option<PathBuf>,
    /// The later one
    #[arg(value_name = "AFTER")]
    pub(crate) after: Option<PathBuf>,
    /// The metric to compare (allocations, or the first that both files have)
    #[arg(long = "metric", alias = "by", value_name = "METRIC", value_parser = choice::measure())]
    pub(crate) by: Option<AnyMeasure>,
    /// Divide all metrics by N, the number of operations of both runs
    #[arg(long, value_name = "N", default_value = "1", hide_default_value = true)]
    pub(crate) per: NonZeroU64,
    /// Hide sites that differ by less than N
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub(crate) min: u64,
    #[command(flatten)]
    pub(crate) expression: LowExpression,
    /// Merge stacks with the same N innermost functions into one site
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) depth: Option<u32>,
    /// Show at most N sites in each section (10, all in JSON)
    #[arg(long = "top", alias = "limit", value_name = "N")]
    pub(crate) limit: Option<usize>,
    #[command(flatten)]
    pub(crate) process: LowProcess,
    #[command(flatten)]
    pub(crate) frames: LowFrames,
    /// Count a block that realloc made where realloc was called, or where the block was first allocated
    #[arg(long, value_name = "WHERE", default_value = "own", value_parser = choice::attribution())]
    pub(crate) realloc: ReallocAttribution,
    /// End with exit code 1 if a limit is exceeded, such as 'allocations>+1%', 'leaked>0' or, of mallow cpu, 'children:parse_row>+2%'
    #[arg(long, value_name = "LIMIT")]
    pub(crate) fail_on: Vec<AnyLimit>,
    #[command(flatten)]
    pub(crate) form: LowForm<DiffForm>,
    /// Old name of --format markdown
    #[arg(long, hide = true, conflicts_with_all = ["json", "format"])]
    pub(crate) markdown: bool,
    /// Print numbers of allocations as another tool's script does
    #[arg(long, hide_short_help = true, value_name = "TOOL", conflicts_with_all = ["by", "per", "min", "filter", "depth", "limit", "all_frames", "plumbing", "realloc",
        "process", "fail_on", "json", "format", "markdown"])]
    pub(crate) compat: Option<Compat>,
}

/// How it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffForm {
    /// Tables for people
    Text,
    /// A document for programs
    Json,
    /// For a comment on a change, at most 65 kB
    Markdown,
}

impl Form for DiffForm {
    const DEFAULT: Self = DiffForm::Text;
    const JSON: Self = DiffForm::Json;
}

/// A limit on a metric of a heap profile or of a CPU profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AnyLimit {
    Heap(Limit),
    Cpu(Limit<CpuMetric>),
    Share(ShareLimit),
}

impl FromStr for AnyLimit {
    type Err = LimitError;

    /// A limit that is neither is refused with the error of a heap limit.
    fn from_str(text: &str) -> Result<Self, LimitError> {
        if ShareLimit::is_one(text) {
            return text.parse().map(AnyLimit::Share);
        }
        let word = text.split('>').next().unwrap_or_default().trim();
        match CpuMetric::of_word(word) {
            Some(_) => text.parse().map(AnyLimit::Cpu),
            None => text.parse().map(AnyLimit::Heap),
        }
    }
}

/// The scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compat {
    /// SwiftNIO's stackdiff-dtrace.py, byte for byte
    Nio,
}
