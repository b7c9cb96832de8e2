//! The JSON documents: their shapes are promises, described by `docs/schema/`.
//!
//! Only these types are serialised, never those of the profile, so that the model can change without breaking a script.

use mallow_base::Frame;
use mallow_profile::{Exit, Process, Profile, SiteTotals, Totals};
use mallow_view::{SiteRow, Sites};
use serde::{Serialize, Serializer};

/// `mallow report --json`.
#[derive(Serialize)]
pub(crate) struct ReportJson<'a> {
    schema: &'static str,
    command: &'a [String],
    counting_version: u32,
    complete: bool,
    warnings: &'a [String],
    totals: TotalsJson,
    /// Only with a filter: the figures of the sites that passed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    selected: Option<FiguresJson>,
    processes: Vec<ProcessJson<'a>>,
    sites: Vec<SiteJson<'a>>,
}

/// `mallow stat --json`.
#[derive(Serialize)]
pub(crate) struct StatJson {
    pub(crate) schema: &'static str,
    pub(crate) command: Vec<String>,
    pub(crate) runs: Vec<RunJson>,
    pub(crate) equal_counts: bool,
}

/// One run of `mallow stat`.
#[derive(Serialize)]
pub(crate) struct RunJson {
    pub(crate) exit: Option<ExitJson>,
    pub(crate) wall_us: u64,
    pub(crate) totals: TotalsJson,
    pub(crate) processes: Vec<OwnedProcessJson>,
}

#[derive(Clone, Copy, Serialize)]
pub(crate) struct TotalsJson {
    allocations: u64,
    bytes: u64,
    frees: u64,
    reallocations: u64,
    temporary: u64,
    failed: u64,
    peak_bytes: u64,
    peak_blocks: u64,
    leaked_bytes: u64,
    leaked_blocks: u64,
}

#[derive(Serialize)]
struct ProcessJson<'a> {
    pid: u32,
    command: &'a str,
    exit: Option<ExitJson>,
    totals: TotalsJson,
}

/// A process of `mallow stat`, whose run is over when it is written.
#[derive(Serialize)]
pub(crate) struct OwnedProcessJson {
    pid: u32,
    command: String,
    exit: Option<ExitJson>,
    totals: TotalsJson,
}

/// `3`, `{"signal":9}`, or `{"exec":true}`.
#[derive(Clone, Copy, Serialize)]
#[serde(untagged)]
pub(crate) enum ExitJson {
    Status(i32),
    Signal { signal: i32 },
    Exec { exec: bool },
}

/// What a site counts.
#[derive(Clone, Copy, Serialize)]
struct FiguresJson {
    allocations: u64,
    bytes: u64,
    temporary: u64,
    peak_bytes: u64,
    peak_blocks: u64,
    leaked_bytes: u64,
    leaked_blocks: u64,
}

#[derive(Serialize)]
struct SiteJson<'a> {
    #[serde(flatten)]
    figures: FiguresJson,
    #[serde(serialize_with = "frames")]
    frames: (&'a Sites<'a>, &'a SiteRow),
}

#[derive(Serialize)]
pub(crate) struct FrameJson<'a> {
    function: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    module: Option<&'a str>,
    inlined: bool,
}

impl<'a> ReportJson<'a> {
    /// The document over `sites` in their order, at most `limit` of them.
    pub(crate) fn of(
        profile: &'a Profile,
        sites: &'a Sites<'a>,
        limit: usize,
        filtered: bool,
        complete: bool,
        warnings: &'a [String],
    ) -> Self {
        Self {
            schema: "mallow.report/1",
            command: &profile.recording.command,
            counting_version: profile.recording.counting_version,
            complete,
            warnings,
            totals: (&profile.totals()).into(),
            selected: filtered.then(|| (&sites.totals()).into()),
            processes: profile.processes.iter().map(ProcessJson::from).collect(),
            sites: sites
                .rows
                .iter()
                .take(limit)
                .map(|row| SiteJson { figures: (&row.totals).into(), frames: (sites, row) })
                .collect(),
        }
    }
}

/// Frames are written as they are walked, because stacks share most of theirs and would not fit into memory apart.
fn frames<S: Serializer>((sites, row): &(&Sites<'_>, &SiteRow), serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(sites.frames(row).map(FrameJson::from))
}

impl<'a> From<&'a Frame> for FrameJson<'a> {
    fn from(frame: &'a Frame) -> Self {
        Self {
            function: &frame.function,
            file: frame.file.as_deref(),
            line: frame.line,
            module: frame.module.as_deref(),
            inlined: frame.inlined,
        }
    }
}

impl From<Exit> for ExitJson {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Status(status) => ExitJson::Status(status),
            Exit::Signal(signal) => ExitJson::Signal { signal },
            Exit::Exec => ExitJson::Exec { exec: true },
        }
    }
}

impl<'a> From<&'a Process> for ProcessJson<'a> {
    fn from(process: &'a Process) -> Self {
        Self {
            pid: process.pid,
            command: &process.command,
            exit: process.exit.map(ExitJson::from),
            totals: (&process.totals).into(),
        }
    }
}

impl From<Process> for OwnedProcessJson {
    fn from(process: Process) -> Self {
        Self {
            pid: process.pid,
            exit: process.exit.map(ExitJson::from),
            totals: (&process.totals).into(),
            command: process.command,
        }
    }
}

impl From<&Totals> for TotalsJson {
    fn from(totals: &Totals) -> Self {
        Self {
            allocations: totals.allocations,
            bytes: totals.bytes,
            frees: totals.frees,
            reallocations: totals.reallocations,
            temporary: totals.temporary,
            failed: totals.failed,
            peak_bytes: totals.peak_bytes,
            peak_blocks: totals.peak_blocks,
            leaked_bytes: totals.leaked_bytes,
            leaked_blocks: totals.leaked_blocks,
        }
    }
}

impl From<&SiteTotals> for FiguresJson {
    fn from(totals: &SiteTotals) -> Self {
        Self {
            allocations: totals.allocations,
            bytes: totals.bytes,
            temporary: totals.temporary,
            peak_bytes: totals.peak_bytes,
            peak_blocks: totals.peak_blocks,
            leaked_bytes: totals.leaked_bytes,
            leaked_blocks: totals.leaked_blocks,
        }
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
