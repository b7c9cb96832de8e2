//! `mallow bench` as typed. Flags that hyperfine or `perf stat` also have are spelt as there, and have the same meaning.

use super::choice::one_of;
use clap::Args;
use mallow_bench::{Metric, Order};
use mallow_text::bench::TimeUnit;
use mallow_text::bench::exports::SortOrder;
use mallow_view::diff::Limit;
use std::path::PathBuf;

/// `mallow bench`.
#[derive(Debug, PartialEq, Args)]
#[command(override_usage = "mallow bench [OPTIONS] <COMMAND>...")]
pub(crate) struct LowBench {
    /// The commands, each as one word: 'grep -i todo'
    #[arg(value_name = "COMMAND", required_unless_present = "reference")]
    pub(crate) commands: Vec<String>,
    /// Warm-up runs of each command, which are not counted
    #[arg(short, long, value_name = "NUM", default_value_t = 0, hide_default_value = true)]
    pub(crate) warmup: u32,
    /// Minimum number of runs of each command, whatever the time
    #[arg(short, long, value_name = "NUM", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) min_runs: Option<u32>,
    /// Maximum number of runs of each command
    #[arg(short = 'M', long, value_name = "NUM", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_runs: Option<u32>,
    /// Exact number of runs of each command (until it is clear which is faster)
    #[arg(short, long, value_name = "NUM", conflicts_with_all = ["min_runs", "max_runs", "max_time"], value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,
    /// Start no new run after this time; each command is run at least twice
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = super::quantity::time)]
    pub(crate) max_time: std::time::Duration,
    /// Run before the first run of each command
    #[arg(short, long, value_name = "CMD")]
    pub(crate) setup: Option<String>,
    /// Compare with this command, which is run too (the first one)
    #[arg(long, value_name = "CMD")]
    pub(crate) reference: Option<String>,
    /// A name for the reference
    #[arg(long, value_name = "NAME", requires = "reference")]
    pub(crate) reference_name: Option<String>,
    /// Run before each run; once for all commands, or once for each
    #[arg(short, long, value_name = "CMD")]
    pub(crate) prepare: Vec<String>,
    /// Run after each run; once for all commands, or once for each
    #[arg(short = 'C', long, value_name = "CMD")]
    pub(crate) conclude: Vec<String>,
    /// Run after the last run of each command
    #[arg(short, long, value_name = "CMD")]
    pub(crate) cleanup: Option<String>,
    /// Run the command with each value from MIN to MAX in place of '{VAR}'
    #[arg(short = 'P', long, num_args = 3, value_names = ["VAR", "MIN", "MAX"], allow_hyphen_values = true, conflicts_with = "parameter_list")]
    pub(crate) parameter_scan: Vec<String>,
    /// The step from one value to the next (1)
    #[arg(short = 'D', long, value_name = "DELTA", requires = "parameter_scan")]
    pub(crate) parameter_step_size: Option<String>,
    /// Run the command with each value of a list such as gcc,clang in place of '{VAR}'
    #[arg(short = 'L', long, num_args = 2, value_names = ["VAR", "VALUES"])]
    pub(crate) parameter_list: Vec<String>,
    /// Run commands in this shell, or in none (sh, for commands that need one)
    #[arg(short = 'S', long, value_name = "SHELL", overrides_with = "no_shell")]
    pub(crate) shell: Option<String>,
    /// The same as --shell=none
    #[arg(short = 'N', overrides_with = "shell")]
    pub(crate) no_shell: bool,
    /// Ignore failures of a command: all, or those with one of these exit codes
    #[arg(short, long, value_name = "MODE", num_args = 0..=1, require_equals = true, default_missing_value = "all-non-zero")]
    pub(crate) ignore_failure: Option<String>,
    /// Style of the output: auto, basic, full, nocolor, color or none
    #[arg(long, value_name = "TYPE", default_value = "auto", value_parser = ["auto", "basic", "full", "nocolor", "color", "none"], hide_possible_values = true)]
    pub(crate) style: String,
    /// Order of rows in exported tables: auto, command or mean-time
    #[arg(long, value_name = "METHOD", default_value = "auto", value_parser = one_of(&SortOrder::ALL, SortOrder::word, |_| ""), hide_possible_values = true)]
    pub(crate) sort: SortOrder,
    /// Unit of times: microsecond, millisecond or second
    #[arg(short = 'u', long, value_name = "UNIT", value_parser = one_of(&TimeUnit::ALL, TimeUnit::word, |_| ""), hide_possible_values = true)]
    pub(crate) time_unit: Option<TimeUnit>,
    /// Write a table of times as AsciiDoc
    #[arg(long, value_name = "FILE")]
    pub(crate) export_asciidoc: Option<PathBuf>,
    /// Write the times as comma-separated values, in seconds
    #[arg(long, value_name = "FILE")]
    pub(crate) export_csv: Option<PathBuf>,
    /// Write everything as JSON (schema mallow.bench/2, with hyperfine's keys)
    #[arg(long, value_name = "FILE")]
    pub(crate) export_json: Option<PathBuf>,
    /// Write a table of times as Markdown
    #[arg(long, value_name = "FILE")]
    pub(crate) export_markdown: Option<PathBuf>,
    /// Write a table of times for Emacs' org-mode
    #[arg(long, value_name = "FILE")]
    pub(crate) export_orgmode: Option<PathBuf>,
    /// Show what the commands print; the same as --output inherit
    #[arg(long)]
    pub(crate) show_output: bool,
    /// Destination of the output: null, pipe, inherit or a file; once for all commands, or once for each
    #[arg(long, value_name = "WHERE", conflicts_with = "show_output")]
    pub(crate) output: Vec<String>,
    /// Source of the input: null or a file
    #[arg(long, value_name = "WHERE", default_value = "null", hide_default_value = true)]
    pub(crate) input: String,
    /// A name for a command; may be given for each
    #[arg(short = 'n', long, value_name = "NAME")]
    pub(crate) command_name: Vec<String>,
    /// Difference within which two commands count as equal
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = super::bench_share)]
    pub(crate) threshold: f64,
    /// Order of runs: interleaved, or all of one command and then all of the next
    #[arg(long, value_name = "ORDER", value_parser = one_of(&[Order::Interleaved, Order::Sequential], order_word, |_| ""))]
    pub(crate) order: Option<Order>,
    /// Events to count, by perf's names, such as cycles,LLC-load-misses
    #[arg(short, long, value_name = "EVENT", value_delimiter = ',')]
    pub(crate) event: Vec<String>,
    /// Show counters as `perf stat -r` does
    #[arg(long)]
    pub(crate) counters: bool,
    /// Show a number that each run prints: the first that the pattern finds
    #[arg(long, value_name = "REGEX")]
    pub(crate) metric: Option<String>,
    /// Runs of each command with the recorder, after the timed ones; 0 for none
    #[arg(long, value_name = "NUM", default_value_t = 3)]
    pub(crate) recorder_runs: u32,
    /// Record heap and CPU profiles of the commands and show what differs most
    #[arg(long)]
    pub(crate) explain: bool,
    /// Draw what differs as flame graphs: FILE for bytes, and beside it FILE.cpu.svg for time
    #[arg(long, value_name = "FILE")]
    pub(crate) flamegraph: Option<PathBuf>,
    /// Compare with the commands of the same names in a file that --save wrote
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Write the result for a later --baseline
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,
    /// End with exit code 1 if a limit is exceeded, such as 'wall>+3%', 'allocations>+0' or 'peak-rss>64MiB'
    #[arg(long, value_name = "LIMIT")]
    pub(crate) fail_on: Vec<Limit<Metric>>,
    /// Print JSON (schema mallow.bench/2, with hyperfine's keys)
    #[arg(long)]
    pub(crate) json: bool,
    /// Print Markdown for a comment on a change
    #[arg(long, conflicts_with_all = ["json", "counters"])]
    pub(crate) markdown: bool,
    /// Write the result as JUnit's XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Accepted for scripts that were written for hyperfine
    #[arg(long, hide = true, value_name = "SECONDS")]
    pub(crate) min_benchmarking_time: Option<f64>,
}

fn order_word(order: Order) -> &'static str {
    match order {
        Order::Interleaved => "interleaved",
        Order::Sequential => "sequential",
    }
}
