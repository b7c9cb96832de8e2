//! A recording that is asked while it runs: what lives now, on which stacks, and what the allocator says of itself.
//!
//! The recording has a thread of its own and keeps no trace: what is asked for is all that anybody wants to know. Its
//! memory is bounded by live blocks and distinct stacks, however long the program runs.

use crate::error::CollectError;
use crate::heap::{HeapFigures, HeapSource};
use crate::launch::Mode;
use crate::live_stacks::LiveStacks;
use crate::output::{NO_TRACE, Output};
use crate::questions::{Question, Questions};
use crate::record::{Ending, RecordOptions, record_asked};
use crate::setting::Setting;
use mallow_profile::LiveSite;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A program under such a recording.
#[derive(Debug)]
pub struct Watched {
    pid: u32,
    questions: Sender<Question>,
    recording: JoinHandle<Result<Ending, CollectError>>,
}

/// What lives at a moment.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// The processes that were recorded then.
    pub processes: Vec<LiveProcess>,
}

/// What lives in one process.
#[derive(Clone, Debug)]
pub struct LiveProcess {
    /// Its number in this recording; an `exec` makes a new one.
    pub index: u32,
    /// Its process id.
    pub pid: u32,
    /// Bytes allocated and not freed.
    pub live_bytes: u64,
    /// Blocks of those.
    pub live_blocks: u64,
    /// Allocations so far.
    pub allocations: u64,
    /// A thread of ours is among its threads.
    pub has_aide: bool,
    /// What each stack holds.
    pub sites: Vec<LiveSite>,
    /// How much memory it has that could be a heap, and what of it was recorded.
    pub heap: HeapFigures,
    /// Where that memory comes from, by what is known up to now.
    pub source: HeapSource,
}

/// What an allocator is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    /// To give back what it does not use.
    pub trim: bool,
    /// To say how much it holds.
    pub account: bool,
}

/// What the allocator of one process said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocatorAccount {
    /// The process.
    pub pid: u32,
    /// `glibc`, `jemalloc`, `mimalloc`, `tcmalloc`.
    pub allocator: &'static str,
    /// What it holds from the kernel; none when it keeps no account.
    pub held_bytes: Option<u64>,
    /// What of that is in use.
    pub used_bytes: Option<u64>,
}

impl Watched {
    /// Starts a command with the recorder in it. It is ended when the thread that started it ends, whatever happens.
    ///
    /// # Errors
    /// When the command cannot be run or recorded.
    pub fn start(
        command: Vec<OsString>,
        setting: Setting,
        preload: &'static [u8],
    ) -> Result<Watched, CollectError> {
        let (questions, receiver) = channel();
        let (started, pid) = channel();
        let options = RecordOptions {
            command,
            output: Output::File { path: PathBuf::from(NO_TRACE), force: true },
            summary_only: true,
            regions: None,
            setting,
            preload,
        };
        let recording = std::thread::Builder::new()
            .name("recording".into())
            .spawn(move || record_asked(&options, Mode::Soak, Questions::new(receiver, started)))
            .map_err(CollectError::system("start a thread"))?;
        match pid.recv() {
            Ok(pid) => Ok(Watched { pid, questions, recording }),
            Err(_) => Err(join(recording).err().unwrap_or_else(|| ended("start the recording"))),
        }
    }

    /// The command's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// What lives now. None when the program has ended.
    pub fn look(&self) -> Option<Look> {
        self.ask(Question::Look)
    }

    /// Live bytes and blocks now, without the stacks. None when the program has ended.
    pub fn live(&self) -> Option<(u64, u64)> {
        self.ask(Question::Live)
    }

    /// Has every process's allocator do something, and waits for that. Processes whose allocator cannot be asked do not
    /// answer.
    pub fn order(&self, order: Order, patience: Duration) -> Vec<AllocatorAccount> {
        self.ask(|reply| Question::Order(order, patience, reply)).unwrap_or_default()
    }

    /// The stacks that looks up to now speak of. None when the program has ended.
    pub fn stacks(&self) -> Option<LiveStacks> {
        self.ask(Question::Stacks)
    }

    fn ask<T>(&self, question: impl FnOnce(Sender<T>) -> Question) -> Option<T> {
        let (reply, answer): (Sender<T>, Receiver<T>) = channel();
        self.questions.send(question(reply)).ok()?;
        answer.recv().ok()
    }

    /// Whether every process of the program has ended.
    pub fn has_ended(&self) -> bool {
        self.recording.is_finished()
    }

    /// Waits until every process of the program has ended; gives how the command ended, and what should be said about
    /// the figures.
    ///
    /// # Errors
    /// When the recording failed on the way.
    pub fn wait(self) -> Result<Ending, CollectError> {
        join(self.recording)
    }
}

fn join<T>(thread: JoinHandle<Result<T, CollectError>>) -> Result<T, CollectError> {
    thread.join().unwrap_or_else(|_| Err(ended("go on with the recording")))
}

fn ended(what: &'static str) -> CollectError {
    CollectError::System { what, cause: std::io::Error::other("its thread has ended") }
}
