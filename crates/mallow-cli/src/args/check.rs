//! `mallow check` as typed.

use super::arguments::LowArguments;
use super::quantity::some_time;
use clap::{Args, ValueEnum};
use std::ffi::OsString;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// `mallow check`.
#[derive(Debug, Args)]
pub(crate) struct LowCheck {
    /// The suite: a mallow.toml, or a folder with one or with test_* sources (./mallow.toml)
    #[arg(value_name = "SUITE")]
    pub(crate) suite: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tests: LowTests,
    #[command(flatten)]
    pub(crate) baselines: LowBaselines,
    #[command(flatten)]
    pub(crate) shown: LowOutputs,
}

/// Which tests run, and how.
#[derive(Debug, Args)]
#[command(next_help_heading = "Tests")]
pub(crate) struct LowTests {
    /// Only tests and regions (TEST.REGION) whose name matches this glob
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Print the names that --only takes and run nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// Measured runs of each test (10, or the suite's number)
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<NonZeroU32>,
    /// Warm-up runs before them (1, or the suite's number)
    #[arg(long, value_name = "N")]
    pub(crate) warmup: Option<u32>,
    /// Programs that are built at the same time (one for each CPU); tests run one after the other
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroU32>,
    /// Time after which a test is killed, such as 30s (the suite's)
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) timeout: Option<Duration>,
    /// Count the objects of Python's own allocator, which the program keeps, in place of running it with PYTHONMALLOC=malloc
    #[arg(long)]
    pub(crate) python_objects: bool,
    #[command(flatten)]
    pub(crate) arguments: LowArguments,
    /// Build and run without mallow's hooks, for another tool; nothing is judged
    #[arg(long, conflicts_with_all = ["update", "against", "json", "junit", "sarif", "markdown", "annotations"])]
    pub(crate) no_hooks: bool,
    /// Build the test NAME and open a shell in the folder where it was built
    #[arg(long, value_name = "NAME", conflicts_with_all = ["only", "list", "update", "against"])]
    pub(crate) shell: Option<String>,
    /// Write mallow.h and the shims for other languages into DIR, and do nothing else
    #[arg(long, alias = "markers", value_name = "DIR", exclusive = true)]
    pub(crate) write_markers: Option<PathBuf>,
}

/// What the tests are compared with.
#[derive(Debug, Args)]
#[command(next_help_heading = "Baselines and limits")]
pub(crate) struct LowBaselines {
    /// Write what was measured as the new baselines
    #[arg(long)]
    pub(crate) update: bool,
    /// Use the measurements of a report that --json printed elsewhere, and run nothing
    #[arg(long, value_name = "REPORT", requires = "update")]
    pub(crate) from: Option<PathBuf>,
    /// Compare with another build, run at the same time: its checkout, its suite, or a command prefix for each test
    #[arg(long, value_name = "OLD", conflicts_with = "update")]
    pub(crate) against: Option<OsString>,
    /// Compare with the baselines of this name, or with --update write them; without it, those without a name
    #[arg(long, value_name = "NAME", conflicts_with = "against")]
    pub(crate) baseline: Option<String>,
    /// Print the names of baselines that have one, with their tests and environments, and run nothing
    #[arg(long, conflicts_with_all = ["update", "against", "baseline", "list", "no_hooks", "shell"])]
    pub(crate) list_baselines: bool,
    /// The folder of the baselines (the suite's folder)
    #[arg(long, value_name = "DIR")]
    pub(crate) baselines: Option<PathBuf>,
    /// SwiftNIO's limits, as its Thresholds/*.json has them, or package-benchmark's folder of *.p90.json
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    pub(crate) thresholds: Option<PathBuf>,
    /// Limits made of the output of SwiftNIO's tests
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    pub(crate) thresholds_from_log: Vec<PathBuf>,
    /// Compare with baselines of another kind of machine or runtime too
    #[arg(long, alias = "compare-anyway")]
    pub(crate) ignore_environment: bool,
    /// Accept fewer allocations than the baseline allows
    #[arg(long)]
    pub(crate) allow_improvement: bool,
    /// With --update: accept counts that vanished or halved in all tests at once
    #[arg(long, alias = "accept-blind", requires = "update")]
    pub(crate) allow_missing_counts: bool,
    /// Write no baseline, as in CI (default where the variable CI is set)
    #[arg(long)]
    pub(crate) ci: bool,
}

/// How the result is shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct LowOutputs {
    /// What to write
    #[arg(short, long, value_name = "FORMAT", default_value = "text", conflicts_with = "json")]
    pub(crate) format: LowFormat,
    /// Print JSON (schema mallow.check/2): the same as --format json
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the result to FILE instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write JUnit's XML to FILE too
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write SARIF 2.1.0 to FILE too: each limit that is broken with its line, for code scanning
    #[arg(long, value_name = "FILE")]
    pub(crate) sarif: Option<PathBuf>,
    /// Write Markdown to FILE too, at most 65 kB; where GITHUB_STEP_SUMMARY is set, to that as well
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Annotate lines of a change on GitHub (default where GITHUB_ACTIONS is set)
    #[arg(long)]
    pub(crate) annotations: bool,
    /// Treat functions whose name matches PATTERN as plumbing too, and blame their callers; * is any text; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub(crate) plumbing: Vec<String>,
    /// Show at most N stacks for each test (10)
    #[arg(long = "top", alias = "limit", value_name = "N")]
    pub(crate) limit: Option<usize>,
}

/// Forms of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LowFormat {
    /// A table, the worst first
    Text,
    /// SwiftNIO's lines
    Nio,
    /// A document for programs
    Json,
    /// For a comment on a change, at most 65 kB
    Markdown,
}
