//! The command line exactly as typed. [`crate::request`] interprets it.

mod arguments;
mod bench;
mod check;
mod choice;
mod config;
mod cpu;
mod diff;
mod events;
mod export;
mod filter;
mod flamegraph;
mod form;
mod gc_log;
mod generated;
mod groups;
mod heap;
mod import;
mod later;
#[cfg(feature = "open")]
mod open;
mod quantity;
mod record;
mod report;
#[cfg(feature = "soak")]
mod soak;
mod stat;
mod symbolize;
mod version;
mod window;

pub(crate) use bench::LowBench;
pub(crate) use check::{LowCheck, LowFormat};
pub(crate) use choice::{AnyMeasure, AnySort};
pub(crate) use config::LowConfig;
pub(crate) use cpu::{LowCpu, SampledBy};
pub(crate) use diff::{AnyLimit, Compat, DiffForm, LowDiff};
pub(crate) use events::LowEvents;
pub(crate) use export::LowExport;
pub(crate) use filter::LowExpression;
pub(crate) use flamegraph::{DrawnAs, LowFlamegraph};
pub(crate) use form::{LowForm, TextOrJson};
pub(crate) use gc_log::{LowGcLog, LowRssUnit};
pub(crate) use generated::{LowCompletions, LowManPages};
pub(crate) use heap::{
    HeapForm, LowHeap, LowHeapCapture, LowHeapCheck, LowHeapCommand, LowHeapDiff, LowHeapExplain,
    LowHeapGrowth, LowHeapReport,
};
pub(crate) use import::LowImport;
pub(crate) use later::Later;
#[cfg(feature = "open")]
pub(crate) use open::{LowOpen, Viewer};
#[cfg(feature = "soak")]
pub(crate) use quantity::time;
pub(crate) use record::LowRecord;
pub(crate) use report::{LowReport, ReportForm};
#[cfg(feature = "soak")]
pub(crate) use soak::{LowHttp, LowReady, LowSoak, LowSoakFormat, LowSoakOutputs};
pub(crate) use stat::LowStat;
pub(crate) use symbolize::LowSymbolize;
pub(crate) use version::LowVersion;
pub(crate) use window::LowWindow;

use crate::exit_code;
use clap::error::{ContextKind, Error, ErrorKind};
use clap::{ArgMatches, ColorChoice, Command, CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Parses a share: `1%`, `0.5`, both in per cent.
fn bench_share(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim().parse::<f64>().ok();
    let share = number.filter(|it| it.is_finite() && *it > 0.0 && *it < 100.0);
    share.map(|it| it / 100.0).ok_or_else(|| "write a share above 0 % and below 100 %, such as 1%".to_owned())
}

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "mallow",
    version = crate::version::LINE,
    about = "Shows where a program's memory goes, whether it leaks, and what allocates most.",
    long_about = "Shows where a program's memory goes, whether it leaks, and what allocates most: any program, in any \
                  language, without rebuilding it.",
    after_help = exit_code::EXAMPLES,
    after_long_help = exit_code::help(),
    arg_required_else_help = true,
    max_term_width = 80
)]
pub(crate) struct LowArgs {
    /// Columns of a line of text (the terminal's, or COLUMNS; without either, names are whole)
    #[arg(long, global = true, help_heading = "Global options", value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(60..))]
    pub(crate) width: Option<u16>,
    /// Whether text has colours: always, never or auto, which is on a terminal, unless NO_COLOR is set, and anywhere where CLICOLOR_FORCE is
    #[arg(
        long,
        global = true,
        help_heading = "Global options",
        value_name = "WHEN",
        hide_possible_values = true
    )]
    pub(crate) color: Option<ColorChoice>,
    /// Do not show pages of report and diff by MALLOW_PAGER, PAGER or less, as is done on a terminal
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) no_pager: bool,
    /// Look for debug files in DIR too, which is laid out like /usr/lib/debug; may be given several times
    #[arg(long, global = true, help_heading = "Global options", value_name = "DIR", hide_short_help = true)]
    pub(crate) debug_path: Vec<PathBuf>,
    /// Look for programs, libraries and debug files below DIR, as on another machine or in a container
    #[arg(long, global = true, help_heading = "Global options", value_name = "DIR", hide_short_help = true)]
    pub(crate) sysroot: Option<PathBuf>,
    /// Say which files were tried for names, and why one was not taken
    #[arg(short, long, global = true, help_heading = "Global options", hide_short_help = true)]
    pub(crate) verbose: bool,
    /// Say nothing on stderr but warnings and what went wrong
    #[arg(short, long, global = true, help_heading = "Global options", hide_short_help = true)]
    pub(crate) quiet: bool,
    /// Open the files that a trace names though it was not recorded here: for names and suppressions
    #[arg(long, global = true, help_heading = "Global options", hide_short_help = true)]
    pub(crate) open_files: bool,
    #[command(subcommand)]
    pub(crate) command: LowCommand,
}

impl LowCommand {
    /// Returns whether a command that reads files writes a document for programs.
    pub(crate) fn is_json(&self) -> bool {
        match self {
            LowCommand::Report(low) => low.form.form() != ReportForm::Text,
            LowCommand::Diff(low) => low.form.is_json(),
            LowCommand::Heap(low) => match &low.command {
                None => low.report.form() == HeapForm::Json,
                Some(LowHeapCommand::Diff(low)) => low.form.is_json(),
                Some(LowHeapCommand::Growth(low)) => low.form.is_json(),
                Some(LowHeapCommand::Explain(low)) => low.form.is_json(),
                Some(LowHeapCommand::Check(low)) => low.form.is_json(),
                Some(LowHeapCommand::Capture(_)) => false,
            },
            _ => false,
        }
    }
}

impl LowArgs {
    /// Returns all commands, with the first page of help.
    pub(crate) fn whole() -> Command {
        let command = LowArgs::command();
        let page = groups::first_page(&command);
        command.help_template(page)
    }

    /// Parses the command line. An error never suggests that an unknown flag might be a file name: it is a typo, or a flag of another command.
    pub(crate) fn parse_typed(words: &[OsString]) -> Result<LowArgs, Error> {
        LowArgs::try_parse_from(words).map_err(|mut error| match error.kind() {
            // The first page is generated only when it is shown.
            ErrorKind::DisplayHelp | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                LowArgs::whole().try_get_matches_from(words).err().unwrap_or(error)
            }
            ErrorKind::UnknownArgument => {
                let _ = error.remove(ContextKind::Suggested);
                error
            }
            _ => error,
        })
    }
}

/// Returns the exit code for a command line that could not be parsed; requested help is not an error.
pub(crate) fn exit_code_of(error: &Error, words: &[OsString]) -> u8 {
    if error.use_stderr() { own_failure_of(words) } else { exit_code::FINE }
}

/// Returns the exit code of a command that cannot even start.
pub(crate) fn own_failure_of(words: &[OsString]) -> u8 {
    let lenient = LowArgs::command().ignore_errors(true).try_get_matches_from(words);
    match lenient.as_ref().ok().and_then(ArgMatches::subcommand_name) {
        Some("record" | "stat" | "cpu") => exit_code::OWN_FAILURE,
        _ => exit_code::BAD_INPUT,
    }
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum LowCommand {
    /// Run a command, record every allocation with its stack, and print a summary
    #[command(
        after_help = "Examples:\n  mallow record ./app --rows 1000\n  mallow record -o app.mallow --force -- ./app\n\n\
                            The summary goes to stderr; the program keeps its stdin, stdout and exit status."
    )]
    Record(Later<LowRecord>),
    /// Run a command and count its allocations, without stacks
    #[command(
        after_help = "Examples:\n  mallow stat ./app --rows 1000\n  mallow stat -r 5 --json -o counts.json ./app\n  mallow stat './app --rows 10' './app --rows 1000'\n\n\
                            Command lines in quotes are compared; which is faster, mallow bench says.\n\
                            The result goes to stderr, with --json to stdout, with -o to the file."
    )]
    Stat(Later<LowStat>),
    /// Sample where CPU time is spent, in a command or a running process
    #[command(
        after_help = "Examples:\n  mallow cpu ./app --rows 1000\n  mallow cpu --off-cpu --pid 4242 --duration 10s\n\n\
                            The summary goes to stderr; the program keeps its stdin, stdout and exit status."
    )]
    Cpu(Later<LowCpu>),
    /// Show what allocated or took time, from a recorded trace or profile
    #[command(
        after_help = "Examples:\n  mallow report --metric leaked\n  mallow report app.4242.mallow --tree --filter 'module:libapp'"
    )]
    Report(Later<LowReport>),
    /// Show what changed between two profiles
    #[command(
        after_help = "Examples:\n  mallow diff before.mallow after.mallow --metric bytes\n  mallow diff before.mallow after.mallow --fail-on 'allocations>+1%'\n\n\
                            Differences are after minus before: an increase has a plus."
    )]
    Diff(Later<LowDiff>),
    /// Draw what allocated as a flame graph, or what changed between two profiles
    #[command(
        after_help = "Examples:\n  mallow flamegraph app.4242.mallow > app.svg\n  mallow flamegraph before.mallow after.mallow -o change.svg\n\n\
                            The drawing is an SVG file; open it in a browser to zoom and search."
    )]
    Flamegraph(Later<LowFlamegraph>),
    #[cfg(feature = "open")]
    /// Show a profile in the browser: in the Firefox Profiler, speedscope or Perfetto
    #[command(
        after_help = "Examples:\n  mallow open app.4242.mallow\n  mallow open app.4242.cpu.pb.gz --in perfetto --no-browser\n\n\
                            The page fetches the profile from this machine; mallow itself asks no other one."
    )]
    Open(Later<LowOpen>),
    /// Make a trace of another tool's profile, or explain an allocator's statistics
    #[command(
        after_help = "Examples:\n  mallow import heaptrack.app.4242.zst\n  mallow import massif.out.4242 -o app.mallow\n\n\
                            Every command that takes a trace takes another tool's profile too."
    )]
    Import(Later<LowImport>),
    /// Write a profile as another tool's file
    #[command(
        after_help = "Examples:\n  mallow export app.4242.mallow --format pprof -o app.pb.gz\n  mallow export --format folded --metric peak | sort"
    )]
    Export(Later<LowExport>),
    /// Fill in names that a trace lacks, from debug files that are there now
    #[command(
        after_help = "Examples:\n  mallow symbolize app.4242.mallow --debug-path ./debug\n  mallow symbolize app.4242.mallow --sysroot /mnt/device -o named.mallow"
    )]
    Symbolize(Later<LowSymbolize>),
    /// Run a project's allocation tests and compare them with their baselines
    #[command(
        after_help = "Examples:\n  mallow check tests/allocations --only 'test_http*'\n  mallow check tests/allocations --update\n\n\
                            The result goes to stdout, with -o to the file; progress goes to stderr."
    )]
    Check(Later<LowCheck>),
    #[cfg(feature = "soak")]
    /// Load-test a server and check it for leaks
    #[command(
        after_help = "Examples:\n  mallow soak --url http://127.0.0.1:8080/ -- ./server --port 8080\n  mallow soak --url http://127.0.0.1:8080/ --for 8h --svg soak.svg ./server\n\n\
                            The verdict goes to stdout; progress goes to stderr. Exit code 1 means a leak, 3 that \
                            it is undecided."
    )]
    Soak(Later<Box<LowSoak>>),
    /// Benchmark commands: which is faster, how certain that is, and why
    #[command(
        after_help = "Examples:\n  mallow bench './app-before data.csv' './app-after data.csv'\n  mallow bench --explain --fail-on 'wall>+3%' './app-before' './app-after'\n\n\
                            The result goes to stdout; progress goes to stderr. A command line of hyperfine works as it is."
    )]
    Bench(Later<Box<LowBench>>),
    /// Show the objects of a managed heap and what retains them, from a snapshot
    #[command(
        after_help = "Examples:\n  mallow heap dump.json --class Session\n  mallow heap dump.hprof --format svg -o held.svg"
    )]
    Heap(LowHeap),
    /// Decide from a log of Ruby's gc_tracer whether objects or native memory grow
    #[command(
        after_help = "Examples:\n  mallow gc-log gc_trace.log --svg gc_trace.svg\n  mallow gc-log gc_trace.log --requests served --json"
    )]
    GcLog(Later<LowGcLog>),
    /// Show the version with its commit, its target, and the versions of formats and counting rules
    #[command(after_help = "Examples:\n  mallow version\n  mallow version --json")]
    Version(Later<LowVersion>),
    /// Show the defaults of flags, and the file or variable that sets each
    #[command(after_help = "Examples:\n  mallow config\n  mallow config --format json")]
    Config(Later<LowConfig>),
    /// Print a shell's completion script
    #[command(
        hide = true,
        after_help = "Examples:\n  mallow completions bash > mallow.bash\n  mallow completions zsh > _mallow"
    )]
    Completions(Later<LowCompletions>),
    /// Write a man page for each command
    #[command(
        hide = true,
        after_help = "Examples:\n  mallow man-pages /usr/local/share/man/man1\n  mallow man-pages ."
    )]
    ManPages(Later<LowManPages>),
}
