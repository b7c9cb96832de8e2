//! The largest storm: how fast the collector takes it in, and how fast its trace opens.

use super::measure;
use super::programs::{compile_storm, storm_of};
use super::tools::{Tool, Tools};
use crate::run;
use procfs::process::Process;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Its name for `--only`.
pub(super) const NAME: &str = "report";

const PAIRS: u64 = 15_000_000;
const PAIRS_QUICK: u64 = 50_000;
const OPENINGS: usize = 5;
const ANALYSES: usize = 3;

/// What is asked of `mallow report`: metrics from the footer, then everything that reads all events.
const REPORT: &[&str] = &["--sort", "bytes", "--limit", "1"];
pub(super) const OF_EVENTS: [&[&str]; 9] = [
    &["--timeline"],
    &["--from", "25%", "--to", "50%"],
    &["--at", "50%"],
    &["--histogram"],
    &["--threads"],
    &["--chains"],
    &["--temporary-within", "10"],
    &["--short-lived", "1ms"],
    &["--timeline", "--histogram", "--threads", "--chains", "--from", "25%", "--to", "50%"],
];

/// What recording and opening it took.
#[derive(Debug, Clone)]
pub(super) struct Large {
    pub(super) events: u64,
    pub(super) record_wall_s: f64,
    /// CPU time of the collector, to the hundredth of a second.
    pub(super) collector_cpu_s: f64,
    pub(super) trace_bytes: u64,
    /// Median of several openings.
    pub(super) report_wall_s: f64,
    /// Greatest resident size of any opening.
    pub(super) report_bytes: u64,
    pub(super) analyses: Vec<Analysis>,
}

/// What one question about its events took.
#[derive(Debug, Clone)]
pub(super) struct Analysis {
    /// As typed behind `mallow report FILE`.
    pub(super) flags: String,
    /// Median of several runs.
    pub(super) wall_s: f64,
    /// Greatest resident size of any run.
    pub(super) bytes: u64,
}

/// Records the largest storm and opens its trace.
pub(super) fn measure(root: &Path, tools: &Tools, quick: bool) -> Result<Large, String> {
    let storm = compile_storm(root, &tools.scratch)?;
    let program = storm_of(&storm, 10, 1, if quick { PAIRS_QUICK } else { PAIRS });
    let sample = measure::once(&program, tools, Tool::Record, measure::MEMORY_ROUND + 1)?;
    let mut openings = Vec::new();
    for _ in 0..OPENINGS {
        openings.push(open(tools, REPORT)?);
    }
    let analyses = OF_EVENTS.iter().map(|flags| analysis(tools, flags)).collect::<Result<_, String>>()?;
    Ok(Large {
        events: tools.events()?,
        record_wall_s: sample.wall_s,
        collector_cpu_s: sample.own_cpu_s,
        trace_bytes: sample.trace_bytes,
        report_wall_s: mallow_base::median(openings.iter().map(|it| it.0)).unwrap_or(0.0),
        report_bytes: openings.iter().map(|it| it.1).max().unwrap_or(0),
        analyses,
    })
}

fn analysis(tools: &Tools, flags: &[&str]) -> Result<Analysis, String> {
    let runs = (0..ANALYSES).map(|_| open(tools, flags)).collect::<Result<Vec<_>, String>>()?;
    Ok(Analysis {
        flags: flags.join(" "),
        wall_s: mallow_base::median(runs.iter().map(|it| it.0)).unwrap_or(0.0),
        bytes: runs.iter().map(|it| it.1).max().unwrap_or(0),
    })
}

/// One opening.
fn open(tools: &Tools, flags: &[&str]) -> Result<(f64, u64), String> {
    let mut command = Command::new(&tools.mallow);
    command.arg("report").arg(tools.trace()).args(flags);
    peak_of(command)
}

/// Wall seconds of a command, and the high-water mark of its resident size, read until it ends.
pub(super) fn peak_of(mut command: Command) -> Result<(f64, u64), String> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    let mut child = command.spawn().map_err(|error| format!("mallow could not be started: {error}."))?;
    let mut bytes = 0;
    let status = loop {
        let status = Process::new(child.id().cast_signed()).and_then(|process| process.status());
        bytes = status.ok().and_then(|status| status.vmhwm).map_or(bytes, |kilobytes| kilobytes * 1024);
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => thread::sleep(Duration::from_micros(200)),
            Err(error) => return Err(format!("waiting for mallow failed: {error}.")),
        }
    };
    let wall_s = started.elapsed().as_secs_f64();
    if status.success() {
        Ok((wall_s, bytes))
    } else {
        Err(format!("`{}` failed ({status}).", run::as_typed(&command)))
    }
}
