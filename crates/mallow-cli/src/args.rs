//! What may stand on the command line, exactly as typed. [`crate::request`] gives it its meaning.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "mallow",
    version,
    about = "Shows where a program's memory goes, whether it leaks, and what allocates most.",
    long_about = "Shows where a program's memory goes, whether it leaks, and what allocates most: any program, in any \
                  language, without rebuilding it.",
    after_help = "Example: mallow record -- python3 -c 'print(sorted(range(9)))'",
    after_long_help = crate::exit_code::help(),
    arg_required_else_help = true,
    max_term_width = 80,
    disable_help_subcommand = true
)]
pub(crate) struct LowArgs {
    #[command(subcommand)]
    pub(crate) command: LowCommand,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum LowCommand {
    /// Run a command, record every allocation with its stack, and print a summary
    #[command(after_help = "Example: mallow record -o app.mallow -- ./app --rows 1000\n\n\
                            The summary goes to stderr; the program keeps its stdin, stdout and exit status.")]
    Record(LowRecord),
    /// Run a command and count its allocations, without stacks
    #[command(after_help = "Example: mallow stat -r 5 -- ./app --rows 1000\n\n\
                            The result goes to stderr, with --json to stdout, with -o to the file.")]
    Stat(LowStat),
    /// Show what allocated, from a recorded trace
    #[command(after_help = "Example: mallow report app.4242.mallow --sort leaked")]
    Report(LowReport),
}

/// `mallow record`.
#[derive(Debug, Args)]
pub(crate) struct LowRecord {
    /// Write the trace to FILE instead of APP.PID.mallow in this folder
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite FILE if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// Keep the figures of each site but not the single events, for long runs
    #[arg(long)]
    pub(crate) summary_only: bool,
    /// The command to run, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// `mallow stat`.
#[derive(Debug, Args)]
pub(crate) struct LowStat {
    /// Run the command N times; show each figure's least, middle and greatest value
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) runs: u32,
    /// Print JSON (schema mallow.stat/1) to stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the result to FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite FILE if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    /// The command to run, with its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

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
