//! The JSON documents: their shapes are promises, described by `docs/schema/`.
//!
//! Only these types are serialised, never those of the profile, so that the model can change without breaking a script.

mod report;

pub(crate) use report::ReportJson;

use mallow_base::Frame;
use mallow_profile::{Exit, Process, Totals};
use serde::Serialize;

/// `mallow stat --json`.
#[derive(Serialize)]
pub(crate) struct StatJson {
    pub(crate) schema: &'static str,
    pub(crate) command: Vec<String>,
    pub(crate) runs: Vec<RunJson>,
    pub(crate) equal_counts: bool,
    /// Whether every process was counted, and every call of each.
    pub(crate) complete: bool,
    pub(crate) warnings: Vec<String>,
}

/// One run of `mallow stat`.
#[derive(Serialize)]
pub(crate) struct RunJson {
    pub(crate) exit: Option<ExitJson>,
    pub(crate) wall_us: u64,
    pub(crate) totals: TotalsJson,
    pub(crate) peak_error_bytes: u64,
    pub(crate) processes: Vec<OwnedProcessJson>,
}

#[derive(Clone, Copy, Serialize)]
pub(crate) struct TotalsJson {
    allocations: Option<u64>,
    bytes: Option<u64>,
    frees: Option<u64>,
    reallocations: Option<u64>,
    temporary: Option<u64>,
    failed: Option<u64>,
    peak_bytes: Option<u64>,
    peak_blocks: Option<u64>,
    leaked_bytes: Option<u64>,
    leaked_blocks: Option<u64>,
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

#[derive(Serialize)]
pub(crate) struct FrameJson<'a> {
    function: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
    module: Option<&'a str>,
    inlined: bool,
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
            allocations: Some(totals.allocations),
            bytes: Some(totals.bytes),
            frees: Some(totals.frees),
            reallocations: Some(totals.reallocations),
            temporary: Some(totals.temporary),
            failed: Some(totals.failed),
            peak_bytes: Some(totals.peak_bytes),
            peak_blocks: Some(totals.peak_blocks),
            leaked_bytes: Some(totals.leaked_bytes),
            leaked_blocks: Some(totals.leaked_blocks),
        }
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
pub(crate) mod tests;
