//! A check's result as JSON, schema `mallow.check/2`: what `mallow check --json` prints and `--update --from` reads.
//!
//! Complete enough to make baselines of: the metrics of every run, and the sites of the run that is judged. Stacks are
//! numbers of frames in one table, because deep stacks share most of their frames.

mod frames;
mod from;
mod into;
mod sarif;

pub use sarif::sarif;

use mallow_base::{Frame, mirror};
use mallow_gate::measurement::{Metrics, Objects, ProcessMetrics};
use mallow_gate::result::Spread;
use serde::{Deserialize, Serialize};

/// The version before, which spells outcomes as people see them.
const BEFORE: &str = "mallow.check/1";

/// The schema of this build's reports.
const SCHEMA: &str = "mallow.check/2";

/// Frames in all stacks of a report that is read: stacks share a table, so a small file could say very many.
const FRAMES_READ_MAX: usize = 4_000_000;

/// At most so many sites of a judged run are written: more than a baseline keeps.
const SITES_MAX: usize = 1000;

/// A whole check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportFile {
    /// [`SCHEMA`].
    schema: String,
    /// Where it ran.
    environment: EnvironmentJson,
    /// Sentences about the whole.
    sentences: Vec<String>,
    /// The command that would accept the metrics as they are.
    update_command: String,
    /// Where programs were built and output was kept.
    folder: String,
    /// Every frame once; stacks are indices into it.
    frames: Vec<FrameJson>,
    /// The tests in the order of the suite, then what is stale.
    tests: Vec<TestJson>,
}

/// See [`mallow_gate::measurement::Environment`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct EnvironmentJson {
    architecture: String,
    libc: String,
    runtime: String,
    allocator: String,
    processors: u32,
    counting: u32,
    /// The name of the class, as the folder of baselines has it.
    class: String,
}

mirror! {
    struct FrameJson both ways of Frame {
        function: String,
        file: Option<String>,
        line: Option<u32>,
        module: Option<String>,
        inlined: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        language: Option<String>,
    }
}

/// One test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct TestJson {
    /// Its name.
    name: String,
    /// The verdict.
    outcome: String,
    /// Why, and what to do about it.
    sentences: Vec<String>,
    /// How long it took, in microseconds.
    duration_us: u64,
    /// One for each metric; empty when nothing was measured.
    #[serde(rename = "judgements")]
    conclusions: Vec<ConclusionJson>,
    /// What changed since the baseline, the largest first.
    changes: Vec<ChangeJson>,
    /// The sites whose allocations differ from run to run, the most varying first.
    varying: Vec<VaryingJson>,
    /// The sites that left blocks or descriptors, the largest first.
    left: Vec<SiteJson>,
    /// What was measured; null when nothing was.
    measurement: Option<MeasurementJson>,
}

/// See [`mallow_gate::result::Conclusion`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct ConclusionJson {
    /// Such as `allocations`.
    metric: String,
    /// `free`, `below`, `within` or `above`.
    #[serde(rename = "standing")]
    position: String,
    /// The runs' values.
    spread: SpreadJson,
    /// The baseline's value.
    reference: Option<u64>,
    /// What is allowed.
    window: Option<WindowJson>,
}

mirror! {
    struct SpreadJson both ways of Spread { min: u64, mode: u64, max: u64, at_min: u32, runs: u32 }
}

/// See [`mallow_gate::result::Window`]. An end that is not limited is null.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct WindowJson {
    min: u64,
    max: Option<u64>,
}

mirror! {
    struct MetricsJson both ways of Metrics {
        allocations: u64,
        bytes: u64,
        peak_bytes: u64,
        remaining_blocks: u64,
        remaining_bytes: u64,
        descriptors: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        temporary: Option<u64>,
    }
}

/// See [`mallow_gate::result::SiteChange`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct ChangeJson {
    /// Innermost first.
    stack: Vec<u32>,
    /// One run's metrics before; null for a new site.
    before: Option<MetricsJson>,
    /// One run's metrics now; null for a site that is gone.
    after: Option<MetricsJson>,
    /// Whether it was matched with the same stack.
    exact: bool,
    /// The place in the stack at which it leaves those of the baseline; left out where the baseline has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blamed: Option<usize>,
}

/// See [`mallow_gate::result::VaryingSite`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct VaryingJson {
    /// Innermost first.
    stack: Vec<u32>,
    /// Its allocations.
    allocations: SpreadJson,
}

/// See [`mallow_gate::measurement::Site`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SiteJson {
    /// Innermost first.
    stack: Vec<u32>,
    /// Its share.
    #[serde(rename = "figures")]
    metrics: MetricsJson,
}

/// See [`mallow_gate::measurement::Measurement`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct MeasurementJson {
    /// The region's name as the program has it; left out for a whole process.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    region: String,
    /// Operations in one run.
    ops: Option<u64>,
    /// Runs that did not count.
    warmups: u32,
    /// Where it ran.
    environment: EnvironmentJson,
    /// What a reader of the metrics should see.
    notes: Vec<String>,
    /// The runs that count, in their order.
    runs: Vec<RunJson>,
    /// The index of the run that is judged.
    judged: usize,
    /// The sites of the judged run, at most [`SITES_MAX`], the largest.
    sites: Vec<SiteJson>,
}

/// See [`mallow_gate::measurement::Run`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct RunJson {
    /// What it came to.
    #[serde(rename = "figures")]
    metrics: MetricsJson,
    /// What the language's runtime told of its objects; left out where it told nothing.
    #[serde(default, skip_serializing_if = "ObjectsJson::is_empty")]
    objects: ObjectsJson,
    /// What a process of the test came to without the recorder; left out where it was not measured.
    #[serde(default, skip_serializing_if = "ProcessJson::is_empty")]
    process: ProcessJson,
    /// Whether what it left stood still when it was counted.
    settled: bool,
    /// How long that was waited for, in microseconds.
    waited_us: u64,
}

mirror! {
    #[derive(Default)]
    struct ObjectsJson both ways of Objects {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        made: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remaining: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remaining_bytes: Option<u64>,
    }
}

mirror! {
    #[derive(Default)]
    struct ProcessJson both ways of ProcessMetrics {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        peak_rss_bytes: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wall_ns: Option<u64>,
    }
}

impl ProcessJson {
    fn is_empty(&self) -> bool {
        *self == ProcessJson::default()
    }
}

impl ObjectsJson {
    fn is_empty(&self) -> bool {
        *self == ObjectsJson::default()
    }
}

/// Why a report cannot be used: a sentence.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct ReportFileError(pub String);

#[cfg(test)]
#[path = "check/model_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "check/document_tests.rs"]
mod document_tests;
