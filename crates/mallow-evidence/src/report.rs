//! What comes of a soak.

use crate::evidence::of_samples;
use crate::{JournalRead, Sample};
use mallow_base::Frame;
use mallow_growth::{Conclusion, Evidence, GrowingStack, Rules, judge};
use mallow_profile::Profile;
use std::path::PathBuf;

/// Everything that was seen, and what it means.
#[derive(Clone, Debug)]
pub struct SoakReport {
    /// The server's command, or `process 123`.
    pub command: Vec<String>,
    /// Its first process.
    pub pid: u32,
    /// What was asked for, such as `http://127.0.0.1:3030/ (50 connections, HTTP/1.1)`.
    pub work: String,
    /// Wall-clock start, in microseconds since 1970.
    pub started_unix_us: u64,
    /// How long it took.
    pub seconds: f64,
    /// Every look, in the order of time.
    pub samples: Vec<Sample>,
    /// What the verdict rests on.
    pub evidence: Evidence,
    /// The verdict.
    pub conclusion: Conclusion,
    /// The memory that the server may have, when that was given.
    pub memory_limit_bytes: Option<u64>,
    /// The stacks that grow, those that grow most first; of a plateau, those that filled it.
    pub growth: Vec<Growth>,
    /// Mappings that grow, those that grow most first.
    pub mappings: Vec<MappingGrowth>,
    /// Live heap at the first and the last observation of the window, for a diff.
    pub edges: Option<(Profile, Profile)>,
    /// Snapshots of a managed heap that grows, if any were taken.
    pub snapshots: Option<HeapSnapshots>,
    /// How the server ended: `exit status 0`, `killed by signal 15`, `still running`.
    pub server_end: String,
    /// Why its live heap is not known, when it is not.
    pub unrecorded: Option<Unrecorded>,
    /// What the reader of the metrics should know.
    pub warnings: Vec<String>,
    /// The comparison with a baseline, when one was given.
    pub comparison: Option<Comparison>,
}

impl SoakReport {
    /// What a journal tells: the verdict on its last server as far as it goes. Stacks are not in it.
    pub fn from_journal(mut read: JournalRead, rules: &Rules) -> SoakReport {
        let server = read.samples.last().map_or(1, |sample| sample.server);
        read.keep_server(server);
        let JournalRead { head, samples } = read;
        let evidence = of_samples(&samples, rules);
        let conclusion = judge(&evidence, rules);
        SoakReport {
            command: head.command,
            pid: head.process.0,
            work: head.work,
            started_unix_us: head.started_unix_us,
            seconds: samples.last().map_or(0.0, |sample| sample.seconds),
            samples,
            evidence,
            conclusion,
            memory_limit_bytes: None,
            growth: Vec::new(),
            mappings: Vec::new(),
            edges: None,
            snapshots: None,
            server_end: String::from("not in the journal"),
            unrecorded: None,
            warnings: Vec::new(),
            comparison: None,
        }
    }
}

/// Two snapshots of one process's managed heap, made behind the iterations that are judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapSnapshots {
    /// The process.
    pub pid: u32,
    /// `ruby`, `python`, `node`, `jvm`.
    pub runtime: String,
    /// The first file.
    pub before: PathBuf,
    /// The second.
    pub after: PathBuf,
    /// Requests that were answered well between them.
    pub requests: u64,
}

/// Why a server's live heap is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unrecorded {
    /// It ran already.
    Running,
    /// Nobody wanted the recorder.
    Unwanted,
    /// The recorder does not get into it; a warning says why.
    Impossible,
}

/// A stack that grows.
#[derive(Clone, Debug)]
pub struct Growth {
    /// Innermost call first, inlined ones included.
    pub frames: Vec<Frame>,
    /// By how much.
    pub stack: GrowingStack,
    /// Live bytes at the first and the last observation of the window.
    pub bytes: (u64, u64),
    /// Live blocks at the first and the last observation of the window.
    pub blocks: (u64, u64),
}

/// A mapping, or all of one name, that grows.
#[derive(Clone, Debug, PartialEq)]
pub struct MappingGrowth {
    /// `[heap]`, `[stack]`, `[anonymous]`, or a file's path.
    pub name: String,
    /// Resident and swapped bytes at the first observation of the window.
    pub before_bytes: u64,
    /// The same at the last.
    pub after_bytes: u64,
    /// How many mappings there were, before and after.
    pub count: (u64, u64),
}

/// This run against another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Where the other came from.
    pub baseline: String,
    /// The series.
    pub series_list: Vec<Series>,
}

/// One metric of both runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Such as `live heap per request` or `requests a second`.
    pub name: &'static str,
    /// `B`, `B/request`, `/s`, `µs`.
    pub unit: &'static str,
    /// In the baseline.
    pub before: f64,
    /// Now.
    pub after: f64,
    /// The confidence interval of the difference.
    pub difference: (f64, f64),
    /// It is worse beyond doubt and beyond the threshold.
    pub worse: bool,
}
