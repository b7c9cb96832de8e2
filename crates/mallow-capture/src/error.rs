//! Why there is no snapshot: a sentence with its cause and, where there is one, its cure.

use crate::process::Runtime;
use mallow_launch::LaunchError;
use std::io;
use std::path::PathBuf;

/// There is no snapshot.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// No such process.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// It is there, but its files in /proc are not for us.
    #[error("process {0} belongs to another user; capture it as its user, or as root")]
    NotOurs(u32),
    /// Nothing that can be asked.
    #[error("process {pid} ({name}) is no Ruby, Python, Node or JVM process{}", those_below(below))]
    NoRuntime {
        /// The process.
        pid: u32,
        /// Its program.
        name: String,
        /// Those that it has started, and their programs.
        below: Vec<(u32, String)>,
    },
    /// Ruby or Python without the hook.
    #[error(
        "the {runtime} process {pid} cannot be asked: mallow has no hook in it; start it with mallow heap capture -- COMMAND{}",
        otherwise(*runtime)
    )]
    NoHook {
        /// The process.
        pid: u32,
        /// Which hook.
        runtime: Runtime,
    },
    /// Node without the flag.
    #[error(
        "the Node process {0} cannot be asked: it was started without --heapsnapshot-signal; start it with \
         mallow heap capture -- COMMAND, or with node --heapsnapshot-signal=SIGUSR2"
    )]
    NoNodeSignal(u32),
    /// The signal would end it.
    #[error(
        "the Node process {0} does not listen to {1} yet, which would end it; ask again when it has started"
    )]
    NodeNotReady(u32, String),
    /// A signal of a name that we do not know.
    #[error(
        "the Node process {0} listens to {1}, which mallow cannot send; start it with --heapsnapshot-signal=SIGUSR2"
    )]
    UnknownSignal(u32, String),
    /// Nothing came in time.
    #[error("process {0} does not answer; it may be busy in native code, so ask again")]
    NoAnswer(u32),
    /// Two at a time.
    #[error("another mallow is capturing process {0}")]
    Busy(u32),
    /// Something came, and then no more.
    #[error("the snapshot of process {pid} is not complete: {cause}")]
    Incomplete {
        /// The process.
        pid: u32,
        /// What happened.
        cause: String,
    },
    /// The JVM said no, or cannot be attached to.
    #[error("the JVM {pid} made no snapshot: {said}")]
    JvmRefused {
        /// The process.
        pid: u32,
        /// Its own words.
        said: String,
    },
    /// `--redact` for a format that it is not made for.
    #[error("--redact is for Ruby's and Python's snapshots; one of {0} holds strings in more than one place")]
    CannotRedact(&'static str),
    /// Never over another file.
    #[error("{} exists; a snapshot overwrites no file", .0.display())]
    Exists(PathBuf),
    /// The file cannot be written.
    #[error("cannot write {}: {cause}", .path.display())]
    Writing {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// The process's files cannot be read.
    #[error("cannot look at process {pid}: {cause}")]
    Looking {
        /// The process.
        pid: u32,
        /// What the system said.
        cause: io::Error,
    },
    /// The hook cannot be put in place.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

/// What the program can do itself.
/// A supervisor, a shell or mallow itself was named instead of what it has started.
fn those_below(below: &[(u32, String)]) -> String {
    let Some((first, _)) = below.first() else { return ", and has started none".to_owned() };
    let all: Vec<String> = below.iter().map(|(pid, name)| format!("{pid} ({name})")).collect();
    format!("; it has started {}: mallow heap capture {first}", all.join(", "))
}

fn otherwise(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Ruby => ", or let the program itself call ObjectSpace.dump_all",
        // Options that make Python ignore its environment.
        Runtime::Python => " (without -E, -I or -S)",
        Runtime::Node | Runtime::Jvm => "",
    }
}
