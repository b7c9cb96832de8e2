//! A check's result as JSON, schema `mallow.check/1`: what `mallow check --json` prints and `--update --from` reads.
//!
//! Complete enough to make baselines of: the figures of every run, and the sites of the run that is judged. Stacks are
//! numbers of frames in one table, because deep stacks share most of their frames.

mod frames;
mod from;
mod into;

use serde::{Deserialize, Serialize};

/// The schema of this build's reports.
pub const SCHEMA: &str = "mallow.check/1";

/// Frames in all stacks of a report that is read: stacks share a table, so a small file could say very many.
pub const FRAMES_READ_MAX: usize = 4_000_000;

/// At most so many sites of a judged run are written: more than a baseline keeps.
pub const SITES_MAX: usize = 1000;

/// A whole check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportFile {
    /// [`SCHEMA`].
    pub schema: String,
    /// Where it ran.
    pub environment: EnvironmentJson,
    /// Sentences about the whole.
    pub sentences: Vec<String>,
    /// The command that would accept the figures as they are.
    pub update_command: String,
    /// Where programs were built and output was kept.
    pub folder: String,
    /// Every frame once; stacks are indices into it.
    pub frames: Vec<FrameJson>,
    /// The tests in the order of the suite, then what is stale.
    pub tests: Vec<TestJson>,
}

/// See [`mallow_gate::measurement::Environment`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the same names as there")]
pub struct EnvironmentJson {
    pub architecture: String,
    pub libc: String,
    pub runtime: String,
    pub allocator: String,
    pub processors: u32,
    pub counting: u32,
    /// The name of the class, as the folder of baselines has it.
    pub class: String,
}

/// See [`mallow_base::Frame`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the same names as there")]
pub struct FrameJson {
    pub function: String,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub module: Option<String>,
    pub inlined: bool,
}

/// One test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestJson {
    /// Its name.
    pub name: String,
    /// The verdict, in capitals.
    pub outcome: String,
    /// Why, and what to do about it.
    pub sentences: Vec<String>,
    /// How long it took, in microseconds.
    pub duration_us: u64,
    /// One for each metric; empty when nothing was measured.
    #[serde(rename = "judgements")]
    pub conclusions: Vec<ConclusionJson>,
    /// What changed since the baseline, the largest first.
    pub changes: Vec<ChangeJson>,
    /// The sites whose allocations differ from run to run, the most varying first.
    pub varying: Vec<VaryingJson>,
    /// The sites that left blocks or descriptors, the largest first.
    pub left: Vec<SiteJson>,
    /// What was measured; null when nothing was.
    pub measurement: Option<MeasurementJson>,
}

/// See [`mallow_gate::result::Conclusion`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConclusionJson {
    /// Such as `allocations`.
    pub metric: String,
    /// `free`, `below`, `within` or `above`.
    #[serde(rename = "standing")]
    pub position: String,
    /// The runs' values.
    pub spread: SpreadJson,
    /// The baseline's value.
    pub reference: Option<u64>,
    /// What is allowed.
    pub window: Option<WindowJson>,
}

/// See [`mallow_gate::result::Spread`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the same names as there")]
pub struct SpreadJson {
    pub min: u64,
    pub mode: u64,
    pub max: u64,
    pub at_min: u32,
    pub runs: u32,
}

/// See [`mallow_gate::result::Window`]. An end that is not limited is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the same names as there")]
pub struct WindowJson {
    pub min: u64,
    pub max: Option<u64>,
}

/// See [`mallow_gate::measurement::Metrics`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the same names as there")]
pub struct MetricsJson {
    pub allocations: u64,
    pub bytes: u64,
    pub peak_bytes: u64,
    pub remaining_blocks: u64,
    pub remaining_bytes: u64,
    pub descriptors: u64,
}

/// See [`mallow_gate::result::SiteChange`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeJson {
    /// Innermost first.
    pub stack: Vec<u32>,
    /// One run's figures before; null for a new site.
    pub before: Option<MetricsJson>,
    /// One run's figures now; null for a site that is gone.
    pub after: Option<MetricsJson>,
    /// Whether it was matched with the same stack.
    pub exact: bool,
    /// The place in the stack at which it leaves those of the baseline; left out where the baseline has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blamed: Option<usize>,
}

/// See [`mallow_gate::result::VaryingSite`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VaryingJson {
    /// Innermost first.
    pub stack: Vec<u32>,
    /// Its allocations.
    pub allocations: SpreadJson,
}

/// See [`mallow_gate::measurement::Site`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SiteJson {
    /// Innermost first.
    pub stack: Vec<u32>,
    /// Its share.
    #[serde(rename = "figures")]
    pub metrics: MetricsJson,
}

/// See [`mallow_gate::measurement::Measurement`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasurementJson {
    /// The region's name as the program has it; left out for a whole process.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// Operations in one run.
    pub ops: Option<u64>,
    /// Runs that did not count.
    pub warmups: u32,
    /// Where it ran.
    pub environment: EnvironmentJson,
    /// What a reader of the figures should see.
    pub notes: Vec<String>,
    /// The runs that count, in their order.
    pub runs: Vec<RunJson>,
    /// The index of the run that is judged.
    pub judged: usize,
    /// The sites of the judged run, at most [`SITES_MAX`], the largest.
    pub sites: Vec<SiteJson>,
}

/// See [`mallow_gate::measurement::Run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunJson {
    /// What it came to.
    #[serde(rename = "figures")]
    pub metrics: MetricsJson,
    /// What the language's runtime told of its objects; left out where it told nothing.
    #[serde(default, skip_serializing_if = "ObjectsJson::is_empty")]
    pub objects: ObjectsJson,
    /// Whether what it left stood still when it was counted.
    pub settled: bool,
    /// How long that was waited for, in microseconds.
    pub waited_us: u64,
}

/// See [`mallow_gate::measurement::Objects`]. What is not known is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the same names as there")]
pub struct ObjectsJson {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining_bytes: Option<u64>,
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
