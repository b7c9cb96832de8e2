//! What to run.

use mallow_bench::Order;
use mallow_counters::Event;
use regex::Regex;
use std::path::PathBuf;
use std::time::Duration;

/// A whole benchmark.
#[derive(Debug)]
pub struct Plan {
    /// The commands.
    pub commands: Vec<PlannedCommand>,
    /// How often.
    pub runs: Runs,
    /// Runs of each command before the first that counts.
    pub warmup: u32,
    /// What runs the commands.
    pub shell: Shell,
    /// Which failures are no failures.
    pub failures: Failures,
    /// Where stdin comes from.
    pub input: Input,
    /// What the kernel is asked to count.
    pub events: Vec<Event>,
    /// The number that each run prints.
    pub printed: Option<Regex>,
    /// How many runs of each command with the recorder.
    pub recorded_runs: u32,
    /// How runs follow one another.
    pub order: Order,
    /// The share within which two commands are the same.
    pub threshold: f64,
}

/// One command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlannedCommand {
    /// How it is called.
    pub name: String,
    /// The command line.
    pub line: String,
    /// Parameters that were put into it.
    pub parameters: Vec<(String, String)>,
    /// Run once before its first run.
    pub setup: Option<String>,
    /// Run before each of its runs.
    pub prepare: Option<String>,
    /// Run after each of its runs.
    pub conclude: Option<String>,
    /// Run once after its last run.
    pub cleanup: Option<String>,
    /// Where its output goes.
    pub output: Output,
}

/// How often the commands run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// Exactly so often.
    Fixed(usize),
    /// Until it is known well enough.
    Adaptive {
        /// At least so often, whatever the time.
        min: Option<usize>,
        /// At most so often.
        max: Option<usize>,
        /// No new run begins after this time.
        time_max: Duration,
    },
}

/// What runs commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Shell {
    /// `sh`, for commands that need one.
    #[default]
    WhereNeeded,
    /// These words and `-c`, for all commands.
    Always(Vec<String>),
    /// None; commands are split into words.
    Never,
}

impl Shell {
    /// Its words, where it runs a command.
    pub(crate) fn words(&self) -> Vec<String> {
        match self {
            Shell::Always(words) => words.clone(),
            Shell::WhereNeeded | Shell::Never => vec!["sh".to_owned()],
        }
    }
}

/// Which statuses other than 0 do not end the benchmark.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Failures {
    /// None.
    #[default]
    End,
    /// All.
    Ignored,
    /// These.
    IgnoredCodes(Vec<i32>),
}

impl Failures {
    /// Returns whether the benchmark goes on after a command ended with this.
    pub(crate) fn allows(&self, code: i32) -> bool {
        match self {
            Failures::End => code == 0,
            Failures::Ignored => true,
            Failures::IgnoredCodes(codes) => code == 0 || codes.contains(&code),
        }
    }
}

/// Where a command's output goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Nowhere.
    #[default]
    Null,
    /// Into a pipe that somebody reads.
    Pipe,
    /// To where ours goes, stderr too.
    Inherit,
    /// Into a file.
    File(PathBuf),
}

/// Where a command's input comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Input {
    /// There is none.
    #[default]
    Null,
    /// From a file.
    File(PathBuf),
}
