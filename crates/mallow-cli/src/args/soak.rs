//! `mallow soak` as typed.

mod quantity;

use super::arguments::LowArguments;
use super::choice::one_of;
use super::quantity::{size, time};
use clap::{Args, ValueEnum};
use mallow_soak::Collection;
use mallow_view::soak::FailOn;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// `mallow soak`.
#[derive(Clone, Debug, PartialEq, Args)]
pub(crate) struct LowSoak {
    #[command(flatten)]
    pub(crate) server: LowServer,
    #[command(flatten)]
    pub(crate) load: LowLoad,
    #[command(flatten)]
    pub(crate) request: LowHttp,
    #[command(flatten)]
    pub(crate) phases: LowPhases,
    #[command(flatten)]
    pub(crate) limits: LowGrowth,
    #[command(flatten)]
    pub(crate) shown: LowSoakOutputs,
    /// The server to start with its arguments
    #[arg(trailing_var_arg = true, required_unless_present_any = ["pid", "read"], value_name = "SERVER")]
    pub(crate) command: Vec<OsString>,
}

/// What is observed.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct LowServer {
    /// Observe a running process: its resident memory, not its heap; it is never signalled
    #[arg(long, value_name = "PID", conflicts_with_all = ["command", "ready_timeout"])]
    pub(crate) pid: Option<u32>,
    /// When it is ready: a URL that responds, port:N that is listening, text:WORDS in its output, or now
    /// (the port of the load is listening)
    #[arg(long, value_name = "HOW", value_parser = ready)]
    pub(crate) ready: Option<LowReady>,
    /// Timeout for that (30s)
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) ready_timeout: Option<Duration>,
    /// Variables for the server, as in a .env; no such file is read unasked
    #[arg(long, value_name = "FILE")]
    pub(crate) env_file: Option<PathBuf>,
    /// Keep what the server prints in FILE instead of dropping it; - for stderr
    #[arg(long, value_name = "FILE")]
    pub(crate) server_output: Option<PathBuf>,
    /// Do not record the server: resident memory alone is observed, and no line is named
    #[arg(long)]
    pub(crate) no_record: bool,
}

/// The load.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LowLoad {
    /// The URL to request; HOST and PORT of the server's environment are set to match it
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Request the URLs that FILE lists, in siege's or vegeta's form
    #[arg(long, value_name = "FILE", conflicts_with = "access_log")]
    pub(crate) urls: Option<PathBuf>,
    /// Request the paths of a server's access log, each as often as in the log
    #[arg(long, value_name = "FILE")]
    pub(crate) access_log: Option<PathBuf>,
    /// Each connection sends the requests in FILE one after the other, with cookies and values of earlier responses;
    /// redirects are not followed: a step requests what they lead to
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["urls", "access_log", "exec", "load_cmd", "method", "body", "body_file", "random"]
    )]
    pub(crate) flow: Option<PathBuf>,
    /// Run a shell command for each iteration instead of HTTP requests
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["url", "urls", "access_log", "load_cmd"])]
    pub(crate) exec: Option<String>,
    /// Use another load generator: hey, wrk, siege, ab, oha, vegeta; {url}, {duration}, {seconds},
    /// {workers} and {requests} are replaced
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["urls", "access_log"])]
    pub(crate) load_cmd: Option<String>,
    /// Load as another tool's script does: its defaults, and its variables in the environment and in .env
    #[arg(long, hide_short_help = true, value_name = "SCRIPT", conflicts_with = "exec")]
    pub(crate) compat: Option<LowSoakScript>,
    /// Concurrent connections (50)
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) concurrency: Option<u32>,
    /// Requests per second, on a fixed schedule (as fast as the server responds)
    #[arg(long, value_name = "R", value_parser = quantity::positive, conflicts_with_all = ["exec", "load_cmd"])]
    pub(crate) rate: Option<f64>,
    /// Requests of an iteration (as many as in a second, at least 1,000)
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) requests: Option<u64>,
    /// How long an iteration is
    #[arg(short = 'z', long, value_name = "TIME", value_parser = time)]
    pub(crate) duration: Option<Duration>,
}

/// Scripts that `mallow soak` can replace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LowSoakScript {
    /// "Warp Memory leak test": HOST, PORT, DURATION, WORKERS and TRIES, else 127.0.0.1, 3030, 3s, 100 and 10
    Warp,
}

/// How requests look.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Requests")]
pub(crate) struct LowHttp {
    /// The method (GET, with a body POST)
    #[arg(short, long, value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// A header, 'name: value'; may be given several times
    #[arg(short = 'H', long, value_name = "HEADER")]
    pub(crate) header: Vec<String>,
    /// The body
    #[arg(short = 'd', long, value_name = "BODY", conflicts_with = "body_file")]
    pub(crate) body: Option<String>,
    /// The body from a file
    #[arg(short = 'D', long, value_name = "FILE")]
    pub(crate) body_file: Option<PathBuf>,
    /// Use HTTP/2 only: with https by ALPN, with http by prior knowledge
    #[arg(long, conflicts_with = "no_keep_alive")]
    pub(crate) http2: bool,
    /// Use HTTP/1.1 only; else a server with https chooses
    #[arg(long, conflicts_with = "http2")]
    pub(crate) http1: bool,
    /// Trust the certificates in FILE (PEM), and those that they have signed, in the place of the system's authorities
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    pub(crate) cacert: Option<PathBuf>,
    /// Do not verify the server's certificate
    #[arg(short = 'k', long)]
    pub(crate) insecure: bool,
    /// The server's name for SNI and for its certificate (the URL's)
    #[arg(long, value_name = "NAME")]
    pub(crate) sni: Option<String>,
    /// A new connection for each request
    #[arg(long)]
    pub(crate) no_keep_alive: bool,
    /// Leave connections open between iterations
    #[arg(long, conflicts_with = "no_keep_alive")]
    pub(crate) keep_connections: bool,
    /// Send requests in random order; equal seeds yield equal orders (1)
    #[arg(long, value_name = "SEED", num_args = 0..=1, default_missing_value = "1")]
    pub(crate) random: Option<u64>,
    /// Statuses that count as success too, such as 404 or 4xx (none from 400 on)
    #[arg(long, value_name = "STATUS,…", value_delimiter = ',', value_parser = quantity::statuses)]
    pub(crate) accept: Vec<RangeInclusive<u16>>,
    /// Timeout of a request (30s)
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) timeout: Option<Duration>,
    /// Threads of the load generator (one for each processor)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) threads: Option<u32>,
    /// Send load to other machines too
    #[arg(long)]
    pub(crate) allow_remote: bool,
    /// Replay requests of an access log that change something too (POST, PUT, DELETE, ...)
    #[arg(long, requires = "access_log")]
    pub(crate) all_methods: bool,
}

/// The phases.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Phases")]
pub(crate) struct LowPhases {
    /// Iterations that are judged (20)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) iterations: Option<u32>,
    /// Warm-up iterations before them (2)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub(crate) warm_up: Option<u32>,
    /// Skip the first iteration, at one and a half times the concurrency
    #[arg(long)]
    pub(crate) no_burst: bool,
    /// How long the server is observed idle before the load, and again after it (2s)
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) idle: Option<Duration>,
    /// End after this time, counted from when the server is ready; what is under way is given up
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) max_time: Option<Duration>,
    /// Go on for this time, such as 8h, whatever the verdict
    #[arg(long = "for", value_name = "TIME", value_parser = time, conflicts_with_all = ["iterations", "max_time"])]
    pub(crate) long: Option<Duration>,
    /// Do not extend an inconclusive soak up to four times
    #[arg(long)]
    pub(crate) no_extend: bool,
    /// How a managed heap is collected before each observation: auto, never, /path of the server, or a signal such as USR1
    #[arg(long, value_name = "HOW", default_value = "auto", value_parser = collection)]
    pub(crate) collect: Collection,
    /// Keep in FOLDER the two snapshots that are taken of a managed heap that grows
    #[arg(long, value_name = "FOLDER")]
    pub(crate) heap_snapshots: Option<PathBuf>,
    /// Take no snapshots of a managed heap that grows; they contain the server's data, and suspend it meanwhile
    #[arg(long, conflicts_with = "heap_snapshots")]
    pub(crate) no_heap_snapshots: bool,
    /// Do not make the allocator trim (release unused memory)
    #[arg(long)]
    pub(crate) no_trim: bool,
}

/// What fails.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LowGrowth {
    /// Growth that is called a leak (4B/req of live heap, 64B/req of resident memory)
    #[arg(long, value_name = "SIZE", value_parser = quantity::per_request)]
    pub(crate) threshold: Option<f64>,
    /// The detection limit that a pass needs (ten times the threshold)
    #[arg(long, value_name = "SIZE", value_parser = quantity::per_request)]
    pub(crate) sensitivity: Option<f64>,
    /// Fail if memory grows by more, leak or not, such as 1B/req
    #[arg(long, value_name = "SIZE", value_parser = quantity::per_request)]
    pub(crate) max_growth: Option<f64>,
    /// Fail if more memory than this is kept after trimming, compared with the first observation, such as 64MiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) max_retained: Option<u64>,
    /// The server's memory limit, to say when it is reached (that of its cgroup, or of the machine)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory_limit: Option<u64>,
    /// Fail on these verdicts and findings too
    #[arg(long = "deny", alias = "fail-on", value_name = "WORD,…", value_delimiter = ',', ignore_case = true, value_parser = one_of(&FailOn::ALL, FailOn::word, |_| ""))]
    pub(crate) fail_on: Vec<FailOn>,
    /// Compare with an earlier soak, a file that --json printed; fails if this one is worse
    #[arg(long, value_name = "FILE", conflicts_with = "against")]
    pub(crate) baseline: Option<PathBuf>,
    /// Soak this server first, in the same way, and compare the other one with it; fails if that is worse
    #[arg(long, value_name = "OLD SERVER", conflicts_with_all = ["pid", "resume", "samples"])]
    pub(crate) against: Option<String>,
}

/// How the result is shown.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct LowSoakOutputs {
    /// The form of the report
    #[arg(short, long, value_name = "FORMAT", default_value = "text", conflicts_with = "json")]
    pub(crate) format: LowSoakFormat,
    /// Print JSON (schema mallow.soak/3): the same as --format json
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) arguments: LowArguments,
    /// Write a line of JSON for each observation to FILE, at once
    #[arg(long, value_name = "FILE")]
    pub(crate) samples: Option<PathBuf>,
    /// Resume a soak that was interrupted, from the samples in FILE
    #[arg(long, requires = "samples")]
    pub(crate) resume: bool,
    /// Judge the samples of a soak that is over or still runs, and run nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "pid", "url", "urls", "access_log", "exec", "load_cmd",
        "samples", "against", "output"])]
    pub(crate) read: Option<PathBuf>,
    /// Write live heap before and after as a pair of profiles for mallow diff: into the folder PREFIX, or as
    /// PREFIX.before.mallow and PREFIX.after.mallow
    #[arg(short, long, value_name = "PREFIX")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite these and the samples if they exist
    #[arg(long)]
    pub(crate) force: bool,
    /// Draw heap and resident memory against requests
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write Markdown to FILE too
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write JUnit's XML to FILE too
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Show at most N stacks (5)
    #[arg(long = "top", alias = "limit", value_name = "N")]
    pub(crate) limit: Option<usize>,
}

/// Forms of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LowSoakFormat {
    /// The verdict, what grows, and every metric
    Text,
    /// The block of the warp leak test for each iteration, then the verdict
    Warp,
    /// A document for programs
    Json,
    /// For a comment on a change
    Markdown,
}

/// How one knows that a server is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LowReady {
    Url(String),
    Port(SocketAddr),
    Text(String),
    Now,
}

fn ready(text: &str) -> Result<LowReady, String> {
    if text == "now" {
        return Ok(LowReady::Now);
    }
    if text.starts_with("http://") || text.starts_with("https://") {
        return Ok(LowReady::Url(text.to_owned()));
    }
    match text.split_once(':') {
        Some(("port", number)) => {
            let port: u16 = number.parse().map_err(|_| format!("`{number}` is not a port"))?;
            Ok(LowReady::Port(SocketAddr::from(([127, 0, 0, 1], port))))
        }
        Some(("text", words)) if !words.trim().is_empty() => Ok(LowReady::Text(words.to_owned())),
        _ => Err("a URL, port:N, text:WORDS or now was expected".into()),
    }
}

fn collection(text: &str) -> Result<Collection, String> {
    match text {
        "auto" => Ok(Collection::Automatic),
        "never" => Ok(Collection::Never),
        path if path.starts_with('/') => Ok(Collection::Path(path.to_owned())),
        word => match quantity::signal(word) {
            Some(signal) => Ok(Collection::Signal(signal)),
            None => Err("auto, never, a path such as /gc, or a signal such as USR1 was expected".into()),
        },
    }
}
