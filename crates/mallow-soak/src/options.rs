//! What to soak, and how.

use mallow_collect::CommandLines;
use mallow_growth::Rules;
use mallow_load::{Amount, Endpoint, Load, Protocol};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// What is watched.
#[derive(Clone, Debug)]
pub enum Server {
    /// A command that is started, and ended, here.
    Command(Vec<OsString>),
    /// A process that runs already. It is never signalled.
    Pid(u32),
}

/// The work of one iteration.
#[derive(Clone, Debug)]
pub enum Work {
    /// Our own load.
    Http(Box<Load>),
    /// A command, run once for each iteration through `sh -c`; one request each.
    Command(String),
    /// Another load generator, run through `sh -c` with `{duration}`, `{seconds}`, `{workers}`, `{requests}` and `{url}`
    /// put in. Its output is read for counts.
    External {
        /// The command line.
        template: String,
        /// What `{url}` stands for.
        url: String,
        /// What `{workers}` stands for.
        workers: u32,
    },
}

/// How one knows that a server is ready.
#[derive(Clone, Debug, PartialEq)]
pub enum Ready {
    /// Something listens at this address.
    Listens(SocketAddr),
    /// It answers a GET of this path with any status below 500.
    Answers(Endpoint, String),
    /// Its output holds this text.
    Says(String),
    /// At once.
    AtOnce,
}

/// How a managed runtime is made to collect before a look.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Collection {
    /// By the hook that is put into Ruby, Python and Node, and through the attach interface of a JVM.
    #[default]
    Automatic,
    /// Not at all.
    Never,
    /// By a GET of this path.
    Path(String),
    /// By this signal.
    Signal(i32),
}

/// Everything that a soak needs to know.
#[derive(Clone, Debug)]
pub struct SoakOptions {
    /// What is watched.
    pub server: Server,
    /// Variables set for it.
    pub environment: Vec<(OsString, OsString)>,
    /// The work of one iteration.
    pub work: Work,
    /// Statuses of 400 and above that are answers all the same, of our own load.
    pub accepted: Vec<RangeInclusive<u16>>,
    /// How long an iteration is; none for what a second of load gives, and at least 1,000 requests.
    pub amount: Option<Amount>,
    /// Iterations that are judged.
    pub iterations: u32,
    /// Go on up to four times as many while the verdict is open.
    pub extend: bool,
    /// Iterations before those.
    pub warm_up: u32,
    /// Begin with an iteration at one and a half times the concurrency.
    pub burst: bool,
    /// How long the server is left alone before the load, and again after it.
    pub idle: Duration,
    /// When it ends, counted from when the server is ready: no work is done later, and time is left to leave the server alone once more.
    pub max_time: Option<Duration>,
    /// A long run: as many iterations as fit into this time, whatever the verdict.
    pub long: Option<Duration>,
    /// How one knows that the server is ready.
    pub ready: Ready,
    /// How long that may take.
    pub ready_timeout: Duration,
    /// How the server's managed memory is collected.
    pub collection: Collection,
    /// Ask the allocator to give back what it does not use before the second look.
    pub trim: bool,
    /// Leave connections open between iterations.
    pub keep_connections: bool,
    /// Put the recorder into the server.
    pub record: bool,
    /// From where on growth is growth.
    pub rules: Rules,
    /// The memory that the server may have, for "time to the limit".
    pub memory_limit_bytes: Option<u64>,
    /// Where samples are kept, line by line.
    pub journal: Option<PathBuf>,
    /// Continue the journal rather than refuse to overwrite it.
    pub resume: bool,
    /// Where the server's output goes; none for stderr of our own.
    pub server_output: Option<PathBuf>,
    /// A folder for two snapshots of a managed heap that grows; none if none are wanted.
    pub snapshots: Option<PathBuf>,
    /// Heaps of more bytes than this are not written into it: a snapshot is about as large as its heap, up to three times.
    pub snapshot_heap_bytes_max: u64,
    /// What is kept of the command lines of the server, its processes and the load.
    pub command_lines: CommandLines,
    /// The preload library's bytes.
    pub preload: &'static [u8],
}

impl SoakOptions {
    /// How long it may work: what the server is left alone for at the end is not in it.
    pub(crate) fn work_time_max(&self) -> Option<Duration> {
        Some(self.max_time?.saturating_sub(self.idle))
    }

    /// Our own load, when there is one.
    pub(crate) fn load(&self) -> Option<&Load> {
        match &self.work {
            Work::Http(load) => Some(load),
            Work::Command(_) | Work::External { .. } => None,
        }
    }

    /// What is spoken at an endpoint, if that was said: what is said of the load holds for no other server.
    pub(crate) fn protocol_at(&self, endpoint: &Endpoint) -> Option<Protocol> {
        self.load().filter(|load| load.endpoint.address == endpoint.address)?.protocol
    }

    /// The load's schedule in requests a second; none without one.
    pub(crate) fn wanted_rate(&self) -> Option<f64> {
        self.load()?.rate
    }
}
