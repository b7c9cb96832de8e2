//! The document of `mallow bench`, described by `docs/schema/bench.json`. It can be read again, as a baseline.
//!
//! `results` has the keys that hyperfine writes, with its units, seconds and bytes, so that scripts made for hyperfine read it. Everything
//! else is below a key `mallow`, in each result and in the document.

use crate::spelling::spelled;
use mallow_bench::{
    Allocations, BenchCommand, Counted, EventCount, Machine, Metric, Order, Run, RunEnd, Session, ShellCost,
    Stop, compare, counted,
};
use mallow_stacks::Metric as _;
use mallow_stats::{PERCENTILES, Summary};
use mallow_text::bench::{LimitRow, limit_sentence, sentences};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The schema's name and version.
pub const SCHEMA: &str = "mallow.bench/2";

/// The version before, which spells the metrics of comparisons as flags do; those are not read.
const BEFORE: &str = "mallow.bench/1";

/// `mallow bench --json` and `--export-json`.
#[derive(Debug, Serialize, Deserialize)]
pub struct BenchJson {
    /// One for each command, as hyperfine has them.
    pub results: Vec<ResultJson>,
    /// What hyperfine has not.
    pub mallow: SessionJson,
}

/// One command.
#[derive(Debug, Serialize, Deserialize)]
pub struct ResultJson {
    command: String,
    mean: Option<f64>,
    stddev: Option<f64>,
    median: Option<f64>,
    user: Option<f64>,
    system: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    times: Vec<f64>,
    memory_usage_byte: Vec<u64>,
    exit_codes: Vec<i32>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<String, String>,
    mallow: CommandJson,
}

/// What hyperfine does not say of a command.
#[derive(Debug, Serialize, Deserialize)]
struct CommandJson {
    line: String,
    in_shell: bool,
    runs: Vec<RunJson>,
    percentiles: BTreeMap<String, f64>,
    allocations: Option<BTreeMap<String, CountedJson>>,
    recorded: Vec<RecordedJson>,
    not_recorded: Option<String>,
    comparison: Option<BTreeMap<String, ComparisonJson>>,
}

/// What is the same in all runs has equal ends.
#[derive(Debug, Serialize, Deserialize)]
struct CountedJson {
    exact: bool,
    min: u64,
    max: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct RecordedJson {
    allocations: u64,
    bytes: u64,
    peak_bytes: u64,
    leaked_bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct RunJson {
    at: usize,
    wall_ns: u64,
    user_ns: u64,
    system_ns: u64,
    peak_rss_bytes: u64,
    minor_faults: u64,
    major_faults: u64,
    voluntary_switches: u64,
    involuntary_switches: u64,
    signal: Option<i32>,
    events: Vec<Option<EventJson>>,
    printed: Option<f64>,
    left: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct EventJson {
    value: f64,
    share: f64,
}

/// Null ends say that there were too few pairs for an interval.
#[derive(Debug, Serialize, Deserialize)]
struct ComparisonJson {
    verdict: String,
    ratio: f64,
    low: Option<f64>,
    high: Option<f64>,
    pairs: usize,
}

/// What belongs to the whole session.
#[derive(Debug, Serialize, Deserialize)]
pub struct SessionJson {
    schema: String,
    reference: usize,
    events: Vec<String>,
    threshold: f64,
    error: f64,
    order: String,
    stop: String,
    shell: Option<ShellJson>,
    machine: MachineJson,
    notes: Vec<String>,
    findings: Vec<String>,
    limits: Vec<LimitJson>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ShellJson {
    shell: String,
    wall_ns: u64,
    user_ns: u64,
    system_ns: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct MachineJson {
    processor: String,
    processors: usize,
    kernel: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct LimitJson {
    limit: String,
    command: String,
    against: Option<String>,
    broken: Option<bool>,
    sentence: String,
}

impl BenchJson {
    /// The document of a session.
    pub fn of(session: &Session, limits: &[LimitRow]) -> BenchJson {
        let results = (0..session.commands.len()).map(|index| result(session, index)).collect();
        let limit = |row: &LimitRow| LimitJson {
            limit: row.limit.clone(),
            command: row.command.clone(),
            against: row.against.clone(),
            broken: row.is_broken,
            sentence: limit_sentence(row),
        };
        let shell = session.shell.as_ref().map(|cost| ShellJson {
            shell: cost.shell.clone(),
            wall_ns: cost.wall_ns,
            user_ns: cost.user_ns,
            system_ns: cost.system_ns,
        });
        let machine = &session.machine;
        let machine = MachineJson {
            processor: machine.processor.clone(),
            processors: machine.processors,
            kernel: machine.kernel.clone(),
        };
        BenchJson {
            results,
            mallow: SessionJson {
                schema: SCHEMA.to_owned(),
                reference: session.reference,
                events: session.events.clone(),
                threshold: session.threshold,
                error: session.error,
                order: word(&ORDERS, session.order),
                stop: word(&STOPS, session.stop),
                shell,
                machine,
                notes: session.notes.clone(),
                findings: sentences::findings(session, None),
                limits: limits.iter().map(limit).collect(),
            },
        }
    }

    /// The text of the document.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// Reads a document again.
    ///
    /// # Errors
    /// A sentence without its end when it is no document of `mallow bench`.
    pub fn read(text: &str) -> Result<Session, String> {
        let document: BenchJson = serde_json::from_str(text).map_err(|error| {
            format!("it is no result of mallow bench ({error}); --save and --export-json write one")
        })?;
        if ![SCHEMA, BEFORE].contains(&&*document.mallow.schema) {
            return Err(format!("its schema is {}, and this mallow reads {SCHEMA}", document.mallow.schema));
        }
        Ok(document.into())
    }
}

const ORDERS: [(Order, &str); 2] = [(Order::Interleaved, "interleaved"), (Order::Sequential, "sequential")];
const STOPS: [(Stop, &str); 5] = [
    (Stop::Done, "done"),
    (Stop::Precise, "precise"),
    (Stop::Time, "time"),
    (Stop::Interrupted, "interrupted"),
    (Stop::Failed, "failed"),
];

fn word<T: PartialEq>(words: &[(T, &str)], value: T) -> String {
    words.iter().find(|known| known.0 == value).map_or(String::new(), |known| known.1.to_owned())
}

fn of_word<T: Copy + Default>(words: &[(T, &str)], text: &str) -> T {
    words.iter().find(|known| known.1 == text).map_or_else(T::default, |known| known.0)
}

fn result(session: &Session, index: usize) -> ResultJson {
    let command = &session.commands[index];
    let seconds =
        |of: fn(&Run) -> u64| -> Vec<f64> { command.runs.iter().map(|run| of(run) as f64 / 1e9).collect() };
    let times = seconds(|run| run.wall_ns);
    let summary = Summary::of(&times);
    let mean = |of| Summary::of(&seconds(of)).map(|summary| summary.mean);
    ResultJson {
        command: command.name.clone(),
        mean: summary.map(|it| it.mean),
        stddev: summary.and_then(|it| it.deviation),
        median: summary.map(|it| it.median),
        user: mean(|run| run.user_ns),
        system: mean(|run| run.system_ns),
        min: summary.map(|it| it.min),
        max: summary.map(|it| it.max),
        times,
        memory_usage_byte: command.runs.iter().map(|run| run.peak_rss_bytes).collect(),
        exit_codes: command.runs.iter().map(|run| run.end.code()).collect(),
        parameters: command.parameters.iter().cloned().collect(),
        mallow: of_command(session, index, summary),
    }
}

fn of_command(session: &Session, index: usize, summary: Option<Summary>) -> CommandJson {
    let command = &session.commands[index];
    let run = |run: &Run| RunJson {
        at: run.at,
        wall_ns: run.wall_ns,
        user_ns: run.user_ns,
        system_ns: run.system_ns,
        peak_rss_bytes: run.peak_rss_bytes,
        minor_faults: run.minor_faults,
        major_faults: run.major_faults,
        voluntary_switches: run.voluntary_switches,
        involuntary_switches: run.involuntary_switches,
        signal: match run.end {
            RunEnd::Signal(signal) => Some(signal),
            RunEnd::Status(_) => None,
        },
        events: run
            .events
            .iter()
            .map(|count| count.map(|count| EventJson { value: count.value, share: count.share }))
            .collect(),
        printed: run.printed,
        left: run.left.clone(),
    };
    let percentiles = summary.into_iter().flat_map(|it| PERCENTILES.into_iter().zip(it.percentiles));
    let recorded = |one: &Allocations| RecordedJson {
        allocations: one.allocations,
        bytes: one.bytes,
        peak_bytes: one.peak_bytes,
        leaked_bytes: one.leaked_bytes,
    };
    CommandJson {
        line: command.line.clone(),
        in_shell: command.in_shell,
        runs: command.runs.iter().map(run).collect(),
        percentiles: percentiles.map(|(name, value)| (name.to_string(), value)).collect(),
        allocations: (!command.allocations.is_empty()).then(|| allocations(command)),
        recorded: command.allocations.iter().map(recorded).collect(),
        not_recorded: command.not_recorded.clone(),
        comparison: (index != session.reference).then(|| comparisons(session, index)),
    }
}

fn allocations(command: &BenchCommand) -> BTreeMap<String, CountedJson> {
    let of = |metric: Metric| {
        let count = counted(command, metric)?;
        let (min, max) = count.ends();
        let exact = matches!(count, Counted::Exact(_));
        Some((spelled(metric.word()).into_owned(), CountedJson { exact, min, max }))
    };
    Metric::ALL.iter().copied().filter(|metric| metric.is_recorded()).filter_map(of).collect()
}

fn comparisons(session: &Session, index: usize) -> BTreeMap<String, ComparisonJson> {
    let of = |metric: Metric| {
        let comparison = compare(session, index, metric);
        let ratio = comparison.ratio?;
        let end = |value: f64| ratio.has_interval().then_some(value);
        let verdict = spelled(comparison.verdict.word()).into_owned();
        let (low, high) = (end(ratio.low), end(ratio.high));
        let document = ComparisonJson { verdict, ratio: ratio.ratio, low, high, pairs: ratio.pairs };
        Some((spelled(metric.word()).into_owned(), document))
    };
    Metric::ALL.iter().copied().filter(|metric| !metric.is_recorded()).filter_map(of).collect()
}

impl From<BenchJson> for Session {
    fn from(document: BenchJson) -> Session {
        let mallow = document.mallow;
        Session {
            commands: document.results.into_iter().map(BenchCommand::from).collect(),
            reference: mallow.reference,
            events: mallow.events,
            threshold: mallow.threshold,
            error: mallow.error,
            order: of_word(&ORDERS, &mallow.order),
            stop: of_word(&STOPS, &mallow.stop),
            shell: mallow.shell.map(|cost| ShellCost {
                shell: cost.shell,
                wall_ns: cost.wall_ns,
                user_ns: cost.user_ns,
                system_ns: cost.system_ns,
            }),
            machine: Machine {
                processor: mallow.machine.processor,
                processors: mallow.machine.processors,
                kernel: mallow.machine.kernel,
            },
            notes: mallow.notes,
        }
    }
}

impl From<ResultJson> for BenchCommand {
    fn from(result: ResultJson) -> BenchCommand {
        let codes = result.exit_codes;
        let run = |(index, run): (usize, RunJson)| Run {
            at: run.at,
            wall_ns: run.wall_ns,
            user_ns: run.user_ns,
            system_ns: run.system_ns,
            peak_rss_bytes: run.peak_rss_bytes,
            minor_faults: run.minor_faults,
            major_faults: run.major_faults,
            voluntary_switches: run.voluntary_switches,
            involuntary_switches: run.involuntary_switches,
            end: match run.signal {
                Some(signal) => RunEnd::Signal(signal),
                None => RunEnd::Status(codes.get(index).copied().unwrap_or_default()),
            },
            events: run
                .events
                .into_iter()
                .map(|count| count.map(|count| EventCount { value: count.value, share: count.share }))
                .collect(),
            printed: run.printed,
            left: run.left,
        };
        let recorded = |one: RecordedJson| Allocations {
            allocations: one.allocations,
            bytes: one.bytes,
            peak_bytes: one.peak_bytes,
            leaked_bytes: one.leaked_bytes,
        };
        BenchCommand {
            name: result.command,
            line: result.mallow.line,
            parameters: result.parameters.into_iter().collect(),
            in_shell: result.mallow.in_shell,
            runs: result.mallow.runs.into_iter().enumerate().map(run).collect(),
            allocations: result.mallow.recorded.into_iter().map(recorded).collect(),
            not_recorded: result.mallow.not_recorded,
        }
    }
}

#[cfg(test)]
#[path = "bench_tests.rs"]
mod tests;
