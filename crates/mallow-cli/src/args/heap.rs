//! `mallow heap` as typed.

use super::choice::one_of;
use super::form::{Form, LowForm, TextOrJson};
use super::later::Later;
use super::quantity::{size, time_at_least};
use clap::{Args, Subcommand, ValueEnum};
use mallow_view::heap::{HeapLimit, LimitKind, Order};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// The help of `--json`, in every command of `heap`.
const JSON: &str = "Print JSON (docs/schema/heap.json), every row: the same as --format json";

/// `mallow heap`.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct LowHeap {
    #[command(subcommand)]
    pub(crate) command: Option<LowHeapCommand>,
    #[command(flatten)]
    pub(crate) report: LowHeapReport,
}

/// A page of one snapshot.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(mut_arg("json", |flag| flag.help(JSON)))]
pub(crate) struct LowHeapReport {
    /// A snapshot of Ruby, V8, a JVM or Python, plain or compressed (gz, zst)
    // Not required with a subcommand.
    #[arg(value_name = "DUMP", required = true)]
    pub(crate) file: Option<PathBuf>,
    /// Show one object: what refers to it, why it is alive, what it retains
    #[arg(long, value_name = "ADDRESS", conflicts_with = "class")]
    pub(crate) object: Option<String>,
    /// Show the objects of a class: where they were allocated, what retains them
    #[arg(long, value_name = "NAME")]
    pub(crate) class: Option<String>,
    /// What rows are ordered by
    #[arg(long = "metric", alias = "sort", value_name = "METRIC", value_parser = one_of(&Order::ALL, Order::word, |_| ""), default_value = "retained")]
    pub(crate) sort: Order,
    /// Old name of --format svg -o FILE
    #[arg(long, hide = true, value_name = "FILE", group = "made", conflicts_with_all = ["object", "class", "json", "format", "output"])]
    pub(crate) flamegraph: Option<PathBuf>,
    /// Old name of --format folded
    #[arg(long, hide = true, conflicts_with_all = ["object", "class", "json", "format", "flamegraph"])]
    pub(crate) folded: bool,
    /// Only count the objects of each class, which is faster and takes less memory
    #[arg(long, conflicts_with_all = ["object", "class", "flamegraph", "folded", "compat"])]
    pub(crate) histogram: bool,
    /// Print what another tool prints, for scripts that read it
    #[arg(long, hide_short_help = true, value_name = "TOOL", conflicts_with_all = ["object", "class", "json"])]
    pub(crate) compat: Option<LowHeapTool>,
    #[command(flatten)]
    pub(crate) rows: LowRows,
    #[command(flatten)]
    pub(crate) form: LowForm<HeapForm>,
}

impl LowHeapReport {
    /// Returns the output format.
    pub(crate) fn form(&self) -> HeapForm {
        match (&self.flamegraph, self.folded) {
            (Some(_), _) => HeapForm::Svg,
            (None, true) => HeapForm::Folded,
            (None, false) => self.form.form(),
        }
    }
}

/// How a heap is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HeapForm {
    /// Tables for people
    Text,
    /// A document for programs, with every row
    Json,
    /// A flame graph of what retains what
    Svg,
    /// Its stacks as text: classes from the roots inwards, and bytes
    Folded,
}

impl Form for HeapForm {
    const DEFAULT: Self = HeapForm::Text;
    const JSON: Self = HeapForm::Json;
}

/// A tool whose text can be printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LowHeapTool {
    /// heapy 0.2.0, with the true size of what was not traced
    Heapy,
}

/// How much is shown.
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct LowRows {
    /// Rows of each table (10)
    #[arg(long = "top", alias = "limit", value_name = "N")]
    pub(crate) limit: Option<usize>,
}

impl LowRows {
    pub(crate) fn limit(&self) -> usize {
        self.limit.unwrap_or(mallow_text::heap::ROWS_DEFAULT)
    }
}

/// What is done with more than one snapshot, or with limits.
#[derive(Debug, PartialEq, Eq, Subcommand)]
pub(crate) enum LowHeapCommand {
    /// Show objects that are new in a later snapshot, and with a third one those that are still there
    #[command(
        after_help = "Examples:\n  mallow heap diff before.json after.json\n  mallow heap diff before.json after.json later.json --holders"
    )]
    Diff(Later<LowHeapDiff>),
    /// Show which classes grow over a series of snapshots
    #[command(
        after_help = "Examples:\n  mallow heap growth 1.json 2.json 3.json 4.json\n  mallow heap growth 1.json 2.json --top 3"
    )]
    Growth(Later<LowHeapGrowth>),
    /// Show where a process's memory is: managed objects, native blocks, the allocator, stacks, files
    #[command(
        after_help = "Examples:\n  mallow heap explain dump.json --pid 4242 --malloc-info info.xml\n  mallow heap explain dump.json --rss 512MiB --json"
    )]
    Explain(Later<LowHeapExplain>),
    /// Capture a snapshot of a process, or start a command so that it can be captured
    #[command(
        after_help = "Examples:\n  mallow heap capture -- bundle exec puma\n  mallow heap capture 4242 -o before.json\n\n\
                            Ruby and Python go on while it is written; Node and a JVM stand still. A snapshot holds secrets: its \
                            file is its owner's alone, and never written over another."
    )]
    Capture(Later<LowHeapCapture>),
    /// Compare a snapshot with limits; exit code 1 if one is exceeded
    #[command(
        after_help = "Examples:\n  mallow heap check dump.json --max-class Session=100\n  mallow heap check dump.json --max-retained Cache=10MiB --json"
    )]
    Check(Later<LowHeapCheck>),
}

/// `mallow heap diff`.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(mut_arg("json", |flag| flag.help(JSON)))]
pub(crate) struct LowHeapDiff {
    /// The first snapshot
    pub(crate) before: PathBuf,
    /// A later one
    pub(crate) after: PathBuf,
    /// A still later one: what is new in AFTER counts only if it is still there
    pub(crate) later: Option<PathBuf>,
    /// Show what retains the growth from the first to the last, and why one of the new objects is alive
    #[arg(long, conflicts_with = "compat")]
    pub(crate) holders: bool,
    /// Print what another tool prints, for scripts that read it
    #[arg(long, hide_short_help = true, value_name = "TOOL", conflicts_with = "json")]
    pub(crate) compat: Option<LowHeapTool>,
    #[command(flatten)]
    pub(crate) rows: LowRows,
    #[command(flatten)]
    pub(crate) form: LowForm<TextOrJson>,
}

/// `mallow heap explain`.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(mut_arg("json", |flag| flag.help(JSON)))]
pub(crate) struct LowHeapExplain {
    /// A snapshot of the managed heap
    pub(crate) dump: PathBuf,
    /// A later snapshot of the same process; every other flag is then given twice, for the first moment and for this one
    pub(crate) later: Option<PathBuf>,
    /// The running process; its current state is the last moment
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Option<u32>,
    /// Its resident memory
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) rss: Vec<u64>,
    /// A copy of its /proc/PID/smaps
    #[arg(long, value_name = "FILE")]
    pub(crate) smaps: Vec<PathBuf>,
    /// What glibc's malloc_info wrote, or jemalloc's stats_print
    #[arg(long, value_name = "FILE", visible_aliases = ["malloc-info", "jemalloc"])]
    pub(crate) allocator: Vec<PathBuf>,
    /// A recording of it, or another tool's profile of live blocks
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) rows: LowRows,
    #[command(flatten)]
    pub(crate) form: LowForm<TextOrJson>,
}

/// `mallow heap growth`.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(mut_arg("json", |flag| flag.help(JSON)))]
pub(crate) struct LowHeapGrowth {
    /// The snapshots, in the order in which they were made
    #[arg(value_name = "DUMP", num_args = 2.., required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) rows: LowRows,
    #[command(flatten)]
    pub(crate) form: LowForm<TextOrJson>,
}

/// `mallow heap capture`.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(
    override_usage = "mallow heap capture [OPTIONS] <PID>\n       mallow heap capture [OPTIONS] -- <COMMAND>..."
)]
pub(crate) struct LowHeapCapture {
    /// A running process: a JVM, Node with --heapsnapshot-signal, Ruby, Python or Node below mallow heap capture -- COMMAND
    #[arg(value_name = "PID", required_unless_present = "command", conflicts_with = "command")]
    pub(crate) pid: Option<u32>,
    /// Write FILE, or into a folder, instead of NAME.PID.N.json in this folder
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Hash the contents of strings; equal strings stay equal (Ruby, Python)
    #[arg(long)]
    pub(crate) redact: bool,
    /// Write unreachable objects too, which a JVM leaves out
    #[arg(long, conflicts_with = "command")]
    pub(crate) all: bool,
    /// Capture a snapshot of the command, and of each capturable process below it, every TIME
    #[arg(long, value_name = "TIME", value_parser = pause, conflicts_with = "pid")]
    pub(crate) every: Option<Duration>,
    /// Do not let Ruby and Python trace the line that allocates each object, which costs time and memory
    #[arg(long, conflicts_with = "pid")]
    pub(crate) no_trace: bool,
    /// The command to run, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// `mallow heap check`.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(mut_arg("json", |flag| flag.help(JSON)))]
pub(crate) struct LowHeapCheck {
    /// The snapshot
    #[arg(value_name = "DUMP")]
    pub(crate) file: PathBuf,
    /// At most N objects of a class
    #[arg(long, value_name = "CLASS=N", value_parser = objects_of)]
    pub(crate) max_class: Vec<HeapLimit>,
    /// At most so many bytes in objects of a class
    #[arg(long, value_name = "CLASS=SIZE", value_parser = |text: &str| bytes_of(text, LimitKind::Bytes))]
    pub(crate) max_class_bytes: Vec<HeapLimit>,
    /// At most so many bytes retained by the objects of a class
    #[arg(long, value_name = "CLASS=SIZE", value_parser = |text: &str| bytes_of(text, LimitKind::Retained))]
    pub(crate) max_retained: Vec<HeapLimit>,
    /// At most N objects in all
    #[arg(long, value_name = "N")]
    pub(crate) max_objects: Option<u64>,
    /// At most so many bytes in all
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_bytes: Option<u64>,
    #[command(flatten)]
    pub(crate) form: LowForm<TextOrJson>,
}

impl LowHeapCheck {
    /// Returns all limits, in the order of the flags.
    pub(crate) fn limits(&self) -> Vec<HeapLimit> {
        let whole = |kind, max: Option<u64>| max.map(|max| HeapLimit { class: None, kind, max });
        let of_classes = [&self.max_class, &self.max_class_bytes, &self.max_retained];
        let mut limits: Vec<HeapLimit> = of_classes.into_iter().flatten().cloned().collect();
        limits.extend(whole(LimitKind::Objects, self.max_objects));
        limits.extend(whole(LimitKind::Bytes, self.max_bytes));
        limits
    }
}

fn objects_of(text: &str) -> Result<HeapLimit, String> {
    let (class, count) = class_and(text)?;
    let max = count.parse().map_err(|_| format!("{count} is no number of objects"))?;
    Ok(HeapLimit { class: Some(class), kind: LimitKind::Objects, max })
}

fn bytes_of(text: &str, kind: LimitKind) -> Result<HeapLimit, String> {
    let (class, bytes) = class_and(text)?;
    Ok(HeapLimit { class: Some(class), kind, max: size(bytes)? })
}

/// Splits at the last equals sign: a class may have one in its name, a limit has none.
fn class_and(text: &str) -> Result<(String, &str), String> {
    let parts = text.rsplit_once('=').filter(|(class, _)| !class.is_empty());
    let (class, limit) = parts.ok_or("it is not of the form CLASS=LIMIT, such as Session=100")?;
    Ok((class.to_owned(), limit))
}

fn pause(text: &str) -> Result<Duration, String> {
    time_at_least(text, Duration::from_millis(100), "a time of at least 100ms")
}
