//! What a check came to.

use crate::measurement::{Environment, Measurement, Metric, Metrics};
use mallow_base::{Frame, words};

/// The verdict on a test; the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Within its limits.
    Ok,
    /// Better than its limits allow: the win wants to be locked in.
    Improved,
    /// A baseline or a limit names a test that was not run.
    Stale,
    /// It has neither a baseline nor a limit.
    Missing,
    /// Its runs differ too much to be judged.
    Flaky,
    /// Worse than its limits allow.
    Regressed,
    /// It seems that the hooks did not see the program.
    Blind,
    /// It could not be built, run or measured.
    Error,
}

words! {
    Outcome {
        Ok = "OK",
        Improved = "IMPROVED",
        Stale = "STALE",
        Missing = "MISSING",
        Flaky = "FLAKY",
        Regressed = "REGRESSED",
        Blind = "BLIND",
        Error = "ERROR",
    }
}

/// The runs' values of one metric. The minimum is judged: disturbances only add to a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// The least value.
    pub min: u64,
    /// The most frequent value; of equally frequent ones the least.
    pub mode: u64,
    /// The greatest value.
    pub max: u64,
    /// How many runs had the minimum.
    pub at_min: u32,
    /// How many runs there were.
    pub runs: u32,
}

/// The range in which a metric is fine, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Less than this is an improvement to lock in.
    pub min: u64,
    /// More than this is a regression.
    pub max: u64,
}

/// The position of a metric relative to its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// No limit is set.
    Free,
    /// Below the window.
    Below,
    /// In the window.
    Within,
    /// Above the window.
    Above,
}

words! { Position { Free = "free", Below = "below", Within = "within", Above = "above" } }

/// A judged metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conclusion {
    /// The metric.
    pub metric: Metric,
    /// The measured values.
    pub spread: Spread,
    /// The baseline's value.
    pub reference: Option<u64>,
    /// The allowed values.
    pub window: Option<Window>,
    /// The position.
    pub position: Position,
}

/// A site whose share changed since the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteChange {
    /// Innermost first. Of the side after where there is one.
    pub frames: Vec<Frame>,
    /// One run's metrics before; none for a new site.
    pub before: Option<Metrics>,
    /// One run's metrics now; none for a site that is gone.
    pub after: Option<Metrics>,
    /// Whether it was matched with the same stack, or with one that is alike.
    pub exact: bool,
    /// The frame where the stack branches off those of the baseline; `None` if the baseline has it.
    pub blamed: Option<usize>,
}

/// A site whose count differs from run to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaryingSite {
    /// Innermost first.
    pub frames: Vec<Frame>,
    /// Its allocations.
    pub allocations: Spread,
}

/// The result of one test.
#[derive(Clone, Debug, PartialEq)]
pub struct TestResult {
    /// The test's name.
    pub name: String,
    /// The verdict.
    pub outcome: Outcome,
    /// Why, and what to do about it, in sentences; empty when all is well.
    pub sentences: Vec<String>,
    /// One for each metric, in the order of [`Metric::ALL`]; empty when nothing was measured.
    pub conclusions: Vec<Conclusion>,
    /// The changes since the baseline, the largest first. Kept if the test is not OK.
    pub changes: Vec<SiteChange>,
    /// The sites that make it flaky, the most varying first.
    pub varying: Vec<VaryingSite>,
    /// The sites that left blocks or descriptors behind in the judged run, the largest first.
    pub left: Vec<crate::measurement::Site>,
    /// Globs of the project's own functions that allocate on behalf of their caller.
    pub plumbing: Vec<String>,
    /// The measurement; none when there was none.
    pub measurement: Option<Measurement>,
    /// How long the test took in all, in microseconds.
    pub duration_us: u64,
}

impl TestResult {
    /// A verdict on something that was not measured, and why.
    pub fn unmeasured(name: &str, outcome: Outcome, sentence: String) -> TestResult {
        TestResult {
            name: name.to_owned(),
            outcome,
            sentences: vec![sentence],
            conclusions: Vec::new(),
            changes: Vec::new(),
            varying: Vec::new(),
            left: Vec::new(),
            plumbing: Vec::new(),
            measurement: None,
            duration_us: 0,
        }
    }
}

/// A whole check.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckResult {
    /// The tests in the order of the suite, then what is stale.
    pub tests: Vec<TestResult>,
    /// Where it ran.
    pub environment: Environment,
    /// Sentences about the whole, such as that every test's counts have dropped.
    pub sentences: Vec<String>,
    /// The command that would accept the metrics as they are.
    pub update_command: String,
    /// Where programs were built and output was kept.
    pub folder: std::path::PathBuf,
}
