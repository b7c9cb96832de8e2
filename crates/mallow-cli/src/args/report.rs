//! `mallow report` as typed.

use super::choice::{self, AnyMeasure, AnySort};
use super::filter::{LowFilter, LowProcess};
use super::form::{Form, LowForm};
use clap::{Args, ValueEnum};
use mallow_profile::ReallocAttribution;
use mallow_view::{Direction, FunctionOrder};
use std::num::NonZeroU64;
use std::path::PathBuf;

/// A deeper tree could not be read by JSON parsers that stop at 128 levels, of which a node takes two.
const DEPTH_MAX: u64 = 60;

/// `mallow report`.
#[derive(Debug, Args)]
#[command(mut_arg("json", |flag| flag.help("Print JSON (schema mallow.report/2): the same as --format json")))]
pub(crate) struct LowReport {
    /// The trace that `mallow record` wrote, or another tool's profile (the newest profile in this folder)
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Show the stacks of the top sites by one metric instead of a short table for each; also sorts trees, functions and points
    #[arg(long = "metric", alias = "sort", value_name = "METRIC", value_parser = choice::sort_key())]
    pub(crate) sort: Option<AnySort>,
    /// mallow cpu: as --metric, but functions unless another view is requested
    #[arg(long, hide = true, value_name = "METRIC", value_parser = choice::measure())]
    pub(crate) measure: Option<AnyMeasure>,
    /// Show the source lines of a function with their metrics
    #[arg(long, value_name = "FUNCTION", conflicts_with_all = ["points", "tree", "per", "json"])]
    pub(crate) annotate: Option<String>,
    /// Show functions with their own metrics (self) and those with all callees (children), sorted by one of the two
    #[arg(
        long,
        value_name = "ORDER",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "self",
        value_parser = choice::function_order(),
        conflicts_with_all = ["points", "tree", "annotate"]
    )]
    pub(crate) functions: Option<FunctionOrder>,
    /// Show the callers and callees of a function
    #[arg(long, value_name = "FUNCTION", conflicts_with_all = ["functions", "points", "tree", "annotate"])]
    pub(crate) peek: Option<String>,
    /// Show all metrics of each site, like DHAT's program points
    #[arg(long, conflicts_with = "tree")]
    pub(crate) points: bool,
    /// Show a tree: from the allocation outwards (callers), or from the start inwards (callees)
    #[arg(
        long,
        value_name = "WAY",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "callers",
        value_parser = choice::direction()
    )]
    pub(crate) tree: Option<Direction>,
    /// Fold branches below this share of the whole tree [default: 1%]
    #[arg(long, value_name = "PERCENT", requires = "tree", value_parser = millionths)]
    pub(crate) threshold: Option<u32>,
    /// Follow at most N branches inwards, up to 60 [default: 16, 60 in JSON]
    #[arg(long, value_name = "N", requires = "tree", value_parser = clap::value_parser!(u64).range(1..=DEPTH_MAX))]
    pub(crate) depth: Option<u64>,
    /// Show at most N sites (5 in each short table, 10 with --metric, all in JSON), or N branches of a tree's node
    #[arg(long = "top", alias = "limit", value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// Divide by N, the number of operations that the program did
    #[arg(long, value_name = "N")]
    pub(crate) per: Option<NonZeroU64>,
    /// Hide the known leaks listed in FILE: lines of leak:PATTERN, as for LeakSanitizer
    #[arg(long, value_name = "FILE")]
    pub(crate) suppressions: Vec<PathBuf>,
    /// Do not look for __lsan_default_suppressions in the recorded executable
    #[arg(long)]
    pub(crate) no_embedded_suppressions: bool,
    /// Show what system libraries are known to keep to the end as leaks too
    #[arg(long)]
    pub(crate) no_default_suppressions: bool,
    /// List what is hidden without --no-default-suppressions, and end
    #[arg(long, conflicts_with = "file")]
    pub(crate) list_default_suppressions: bool,
    #[command(flatten)]
    pub(crate) process: LowProcess,
    #[command(flatten)]
    pub(crate) filter: LowFilter,
    /// Count a block that realloc made where realloc was called, or where the block was first allocated
    #[arg(long, value_name = "WHERE", default_value = "own", value_parser = choice::attribution())]
    pub(crate) realloc: ReallocAttribution,
    /// In JSON, write each frame once: the key frames is a table, and a site's stack has the frames' indices in it
    #[arg(long)]
    pub(crate) compact: bool,
    #[command(flatten)]
    pub(crate) form: LowForm<ReportForm>,
    #[command(flatten)]
    pub(crate) events: super::LowEvents,
}

/// How it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportForm {
    /// Tables and trees for people
    Text,
    /// A document for programs
    Json,
    /// The same, one line for each site, process and the like, behind a line with the rest
    Ndjson,
}

impl Form for ReportForm {
    const DEFAULT: Self = ReportForm::Text;
    const JSON: Self = ReportForm::Json;
}

/// Parses `1%` or `0.5` as millionths of the whole.
fn millionths(text: &str) -> Result<u32, String> {
    let percent: f64 =
        text.trim_end_matches('%').parse().map_err(|_| "a percentage was expected".to_owned())?;
    if (0.0..=100.0).contains(&percent) {
        Ok((percent * 10_000.0).round() as u32)
    } else {
        Err("a percentage from 0 to 100 was expected".to_owned())
    }
}
