//! What was measured.

/// A session: commands that were run in turns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Session {
    /// The commands, in the order in which they were named; a `--reference` first.
    pub commands: Vec<BenchCommand>,
    /// Which of them the others are compared with.
    pub reference: usize,
    /// The names of the events that were counted in each run.
    pub events: Vec<String>,
    /// The share within which two commands are the same: 0.01 for 1 %.
    pub threshold: f64,
    /// The chance, at most, that an interval of the last look misses the truth.
    pub error: f64,
    /// How runs followed one another.
    pub order: Order,
    /// Why it ended.
    pub stop: Stop,
    /// What a shell costs, where one ran commands.
    pub shell: Option<ShellCost>,
    /// The machine.
    pub machine: Machine,
    /// What the reader should know beside the figures, in sentences.
    pub notes: Vec<String>,
}

/// How runs followed one another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// In random blocks: all commands, then all of them the other way round.
    #[default]
    Interleaved,
    /// All runs of a command, then all of the next.
    Sequential,
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// As many runs as were wanted.
    #[default]
    Done,
    /// The intervals are narrow enough.
    Precise,
    /// The time is over.
    Time,
    /// Somebody interrupted it.
    Interrupted,
    /// A command failed.
    Failed,
}

/// What a shell adds to a run, taken off each run that had one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ShellCost {
    /// The shell's words.
    pub shell: String,
    /// Time from start to end.
    pub wall_ns: u64,
    /// Time on a processor, in the program.
    pub user_ns: u64,
    /// Time on a processor, in the kernel.
    pub system_ns: u64,
}

/// The machine, as far as a later session should run on the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The processor's name.
    pub processor: String,
    /// How many processors there are.
    pub processors: usize,
    /// The kernel's release.
    pub kernel: String,
}

/// One command of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BenchCommand {
    /// How it is called: the command line, or what `--command-name` says.
    pub name: String,
    /// The command line, with its parameters put in.
    pub line: String,
    /// Parameters and their values.
    pub parameters: Vec<(String, String)>,
    /// Whether a shell ran it.
    pub in_shell: bool,
    /// The timed runs, in their order.
    pub runs: Vec<Run>,
    /// What a few runs with the recorder counted; none where it was not asked for, or could not be.
    pub allocations: Vec<Allocations>,
    /// Why there are no allocations, in a sentence.
    pub not_recorded: Option<String>,
}

/// One timed run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Its place among all runs of the session.
    pub at: usize,
    /// From its start to its end, without the shell's part.
    pub wall_ns: u64,
    /// Time on a processor, in the program and what it waited for.
    pub user_ns: u64,
    /// The same in the kernel.
    pub system_ns: u64,
    /// The peak of resident memory of its largest process.
    pub peak_rss_bytes: u64,
    /// Page faults served from memory.
    pub minor_faults: u64,
    /// Page faults that needed the disk.
    pub major_faults: u64,
    /// Switches because it waited.
    pub voluntary_switches: u64,
    /// Switches because another process was to run.
    pub involuntary_switches: u64,
    /// How it ended.
    pub end: RunEnd,
    /// Counts of the session's events; none where the kernel did not count.
    pub events: Vec<Option<EventCount>>,
    /// The number that it printed, where one is looked for.
    pub printed: Option<f64>,
    /// Processes that it had started and that still ran at its end.
    pub left: Vec<String>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// With a status.
    Status(i32),
    /// By a signal.
    Signal(i32),
}

impl Default for RunEnd {
    fn default() -> RunEnd {
        RunEnd::Status(0)
    }
}

impl RunEnd {
    /// As a shell says it: 128 and the number of the signal.
    pub fn code(self) -> i32 {
        match self {
            RunEnd::Status(status) => status,
            RunEnd::Signal(signal) => signal.saturating_add(128),
        }
    }
}

/// A count of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventCount {
    /// The number, scaled where the counter took turns with others.
    pub value: f64,
    /// The part of the time for which it ran.
    pub share: f64,
}

/// What one run with the recorder counted, over all its processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    /// Calls that allocated.
    pub allocations: u64,
    /// Bytes they asked for.
    pub bytes: u64,
    /// Bytes live when most were.
    pub peak_bytes: u64,
    /// Bytes live at the end.
    pub leaked_bytes: u64,
}
