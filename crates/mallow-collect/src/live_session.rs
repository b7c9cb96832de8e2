//! A live session: a command that is asked while it runs what lives now, on which stacks, and what the allocator says of itself.
//!
//! Collecting has a thread of its own and keeps no trace: what is asked for is all that anybody wants to know. Its
//! memory is bounded by live blocks and distinct stacks, however long the program runs.

use crate::clock::Clock;
use crate::collector::Collector;
use crate::command_lines::CommandLines;
use crate::error::CollectError;
use crate::live_heap::{AllocatorAccount, LiveHeap, Order};
use crate::live_queries::{LiveQueries, Query, Registered};
use crate::live_stacks::LiveStacks;
use crate::patching::Inside;
use crate::process::Wanted;
use crate::session::Session;
use crate::sink::NoSink;
use crate::target::{Mode, TracedCommand};
use mallow_launch::{Content, Interrupts, Launch, SpawnOptions};
use mallow_profile::Exit;
use std::ffi::OsString;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// How the command of a live session ended.
#[derive(Clone, Debug)]
pub struct Ending {
    /// Its exit status, if the system told.
    pub exit: Option<Exit>,
    /// As in [`crate::RecordOutcome`].
    pub warnings: Vec<String>,
    /// As in [`crate::RecordOutcome`].
    pub faults: Vec<String>,
}

/// A program in a live session.
#[derive(Debug)]
pub struct LiveSession {
    pid: u32,
    queries: Sender<Query>,
    registered: Registered,
    recording: JoinHandle<Result<Ending, CollectError>>,
}

impl LiveSession {
    /// Starts a command with the recorder in it, of whose processes so much of the command lines is kept. It is ended when the thread that started it ends, whatever happens.
    ///
    /// # Errors
    /// When the command cannot be run or recorded.
    pub fn start(
        command: Vec<OsString>,
        command_lines: CommandLines,
        options: SpawnOptions,
        preload: Content<'static>,
    ) -> Result<LiveSession, CollectError> {
        let (queries, receiver) = channel();
        let (started, pid) = channel();
        let registered = Registered::default();
        let answering = LiveQueries::new(receiver, started, registered.clone());
        let recording = std::thread::Builder::new()
            .name("recording".into())
            .spawn(move || run(&command, command_lines, &options, preload, answering))
            .map_err(CollectError::system("start a thread"))?;
        match pid.recv() {
            Ok(pid) => Ok(LiveSession { pid, queries, registered, recording }),
            Err(_) => Err(join(recording).err().unwrap_or_else(|| ended("start the recording"))),
        }
    }

    /// The command's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the processes that are recorded now, wherever they have gone: a daemon leaves its family.
    pub fn pids(&self) -> Vec<u32> {
        self.registered.pids()
    }

    /// Returns what is live now. `None` if the program has ended.
    pub fn heap(&self) -> Option<LiveHeap> {
        self.ask(Query::Heap)
    }

    /// Live bytes and blocks now, without the stacks. None when the program has ended.
    pub fn live(&self) -> Option<(u64, u64)> {
        self.ask(Query::Live)
    }

    /// Sends a request to every process's allocator, and waits for the reports. Processes whose allocator has no such
    /// function do not answer.
    pub fn order(&self, order: Order, patience: Duration) -> Vec<AllocatorAccount> {
        self.ask(|reply| Query::Order(order, patience, reply)).unwrap_or_default()
    }

    /// Returns the stacks of all snapshots up to now. `None` if the program has ended.
    pub fn stacks(&self) -> Option<LiveStacks> {
        self.ask(Query::Stacks)
    }

    fn ask<T>(&self, query: impl FnOnce(Sender<T>) -> Query) -> Option<T> {
        let (reply, answer): (Sender<T>, Receiver<T>) = channel();
        self.queries.send(query(reply)).ok()?;
        answer.recv().ok()
    }

    /// Returns whether every process of the program has ended.
    pub fn has_ended(&self) -> bool {
        self.recording.is_finished()
    }

    /// Ends the recording. Processes that still run go on without it, and are named. Returns how the command ended, and warnings about the metrics.
    ///
    /// # Errors
    /// If the recording failed.
    pub fn end(self) -> Result<Ending, CollectError> {
        // Nobody hears it of a program that has ended.
        let _ = self.queries.send(Query::End);
        join(self.recording)
    }
}

/// Collects and answers until every process has ended. It writes nothing, and does not react to Ctrl-C.
fn run(
    command: &[OsString],
    command_lines: CommandLines,
    options: &SpawnOptions,
    preload: Content<'_>,
    mut queries: LiveQueries,
) -> Result<Ending, CollectError> {
    let launch = Launch::new(command)?;
    let inside = Inside::prepare(preload, &launch, command)?;
    let session = Session::open(command_lines)?;
    let clock = Clock::start();
    let mut command =
        TracedCommand::start(&launch, &session, &inside, Mode::Soak, options, Interrupts::ignored())?;
    queries.started(command.pid());
    // A server may start and end threads and processes for days: they cannot all be kept.
    let wanted = Wanted { events: false, threads: false, regions: None, exited: false, own: false };
    let mut collector = Collector::new(Some(session), clock, NoSink, wanted);
    if let Err(error) = collector.run(&mut command, &mut queries) {
        collector.detach(&mut command);
        return Err(error);
    }
    collector.close_all()?;
    collector.name_missing_starts();
    Ok(Ending {
        exit: command.exit(),
        warnings: [collector.findings.warnings(), collector.findings.killed].concat(),
        faults: collector.findings.faults,
    })
}

fn join<T>(thread: JoinHandle<Result<T, CollectError>>) -> Result<T, CollectError> {
    thread.join().unwrap_or_else(|_| Err(ended("go on with the recording")))
}

fn ended(what: &'static str) -> CollectError {
    CollectError::System { what, cause: std::io::Error::other("its thread has ended") }
}
