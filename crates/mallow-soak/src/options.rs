//! What to soak, and how.

use mallow_collect::CommandLines;
use mallow_growth::Rules;
use mallow_launch::Content;
use mallow_load::{Amount, Endpoint, Load, Protocol};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// What is observed.
#[derive(Clone, Debug)]
pub enum Server {
    /// A command that the soak starts and stops.
    Command(Vec<OsString>),
    /// A process that already runs. It is never signalled.
    Pid(u32),
}

/// The work of one iteration.
#[derive(Clone, Debug)]
pub enum Work {
    /// Load of mallow's own generator.
    Http(Box<Load>),
    /// A command, run once for each iteration through `sh -c`; each run counts as one request.
    Command(String),
    /// Another load generator, run through `sh -c` with `{duration}`, `{seconds}`, `{workers}`, `{requests}` and
    /// `{url}` replaced. Its output is parsed for counts.
    External {
        /// The command line.
        template: String,
        /// The replacement of `{url}`.
        url: String,
        /// The replacement of `{workers}`.
        workers: u32,
    },
}

/// How it is detected that a server is ready.
#[derive(Clone, Debug, PartialEq)]
pub enum Ready {
    /// A port listens at this address.
    Listens(SocketAddr),
    /// It responds to a GET of this path with any status below 500.
    Answers(Endpoint, String),
    /// Its output contains this text.
    Says(String),
    /// At once.
    AtOnce,
}

/// How a managed runtime is made to collect before an observation.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Collection {
    /// By the hook that is loaded into Ruby, Python and Node, and through the attach interface of a JVM.
    #[default]
    Automatic,
    /// Not at all.
    Never,
    /// By a GET of this path.
    Path(String),
    /// By this signal.
    Signal(i32),
}

/// The settings of a soak.
#[derive(Clone, Debug)]
pub struct SoakOptions {
    /// What is observed.
    pub server: Server,
    /// Variables set for it.
    pub environment: Vec<(OsString, OsString)>,
    /// The work of one iteration.
    pub work: Work,
    /// Statuses of 400 and above that count as success, with mallow's own load.
    pub accepted: Vec<RangeInclusive<u16>>,
    /// The length of an iteration; `None` for as many requests as a second of load sends, and at least 1,000.
    pub amount: Option<Amount>,
    /// Iterations that are judged.
    pub iterations: u32,
    /// Continue, up to four times as long, while there is no verdict.
    pub extend: bool,
    /// Iterations before those, which are not judged.
    pub warm_up: u32,
    /// Start with an iteration at one and a half times the concurrency.
    pub burst: bool,
    /// How long the server gets no requests before the load, and again after it.
    pub idle: Duration,
    /// When it ends, counted from when the server is ready: no work is done later, and time is left for the last idle phase.
    pub max_time: Option<Duration>,
    /// A long run: as many iterations as fit into this time, whatever the verdict.
    pub long: Option<Duration>,
    /// How it is detected that the server is ready.
    pub ready: Ready,
    /// The maximum time until then.
    pub ready_timeout: Duration,
    /// How the server's managed memory is collected.
    pub collection: Collection,
    /// Make the allocator release unused memory before the second reading.
    pub trim: bool,
    /// Leave connections open between iterations.
    pub keep_connections: bool,
    /// Load the recorder into the server.
    pub record: bool,
    /// The thresholds of growth.
    pub rules: Rules,
    /// The memory that the server may have, for "time to the limit".
    pub memory_limit_bytes: Option<u64>,
    /// The file for samples, one per line.
    pub journal: Option<PathBuf>,
    /// Continue the journal instead of refusing to overwrite it.
    pub resume: bool,
    /// The file for the server's output; `None` for our stderr.
    pub server_output: Option<PathBuf>,
    /// A folder for two snapshots of a managed heap that grows; `None` for no snapshots.
    pub snapshots: Option<PathBuf>,
    /// A larger heap is not written: a snapshot is between one and three times as large as its heap.
    pub snapshot_heap_bytes_max: u64,
    /// What is kept of the command lines of the server, its processes and the load.
    pub command_lines: CommandLines,
    /// The preload library.
    pub preload: Content<'static>,
}

impl SoakOptions {
    /// Returns the maximum time for work, without the last idle phase.
    pub(crate) fn work_time_max(&self) -> Option<Duration> {
        Some(self.max_time?.saturating_sub(self.idle))
    }

    /// Returns the load of mallow's own generator, if it is used.
    pub(crate) fn load(&self) -> Option<&Load> {
        match &self.work {
            Work::Http(load) => Some(load),
            Work::Command(_) | Work::External { .. } => None,
        }
    }

    /// Returns the protocol of an endpoint, if it is known: the load's protocol says nothing about another server.
    pub(crate) fn protocol_at(&self, endpoint: &Endpoint) -> Option<Protocol> {
        self.load().filter(|load| load.endpoint.address == endpoint.address)?.protocol
    }

    /// Returns the load's rate in requests a second; `None` without one.
    pub(crate) fn wanted_rate(&self) -> Option<f64> {
        self.load()?.rate
    }
}
