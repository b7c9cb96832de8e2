//! The recording of this process from inside: one at a time, with a collector on a thread of its own.
//!
//! The shared memory is made once and serves every recording of the process; in a forked child it is made anew, because the child's recording
//! is not its parent's. What this file does itself is not recorded, so that no figure is mallow's.

use mallow_collect::{CollectError, Output, OwnOptions, OwnQuery, collect_own};
use mallow_profile::{Module, Profile};
use mallow_recorder::{bootstrap, thread, watchers};
use mallow_symbols::{ModuleKey, SearchPaths, Symbolizer};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread::JoinHandle;

/// Why there is no recording from inside.
#[derive(Debug, thiserror::Error)]
pub enum InsideError {
    /// A recording is under way.
    #[error(
        "this process is being recorded from inside already; drop that profile before the next one begins"
    )]
    UnderWay,
    /// `mallow record` watches.
    #[error("the program runs under mallow, which records it from outside; '{0}' is not written")]
    Outside(String),
    /// `mallow record` watches by the recorder that is in the program.
    #[error(
        "the program is static and runs under mallow, which has taken the recorder in it; nothing else can be counted meanwhile"
    )]
    Taken,
    /// There is no memory, or no thread, for it.
    #[error("the recording could not begin: {0}")]
    NotBegun(std::io::Error),
    /// The program has no allocator that says what it does.
    #[error(
        "no allocation came by: give the program `#[global_allocator] static ALLOC: mallow_alloc::Mallow<…> = mallow_alloc::Mallow::new(…)`"
    )]
    NoAllocator,
    /// The trace could not be written.
    #[error(transparent)]
    Collect(#[from] CollectError),
    /// The profile could not be written.
    #[error("cannot write the profile '{path}': {cause}")]
    CannotWrite {
        /// The file.
        path: std::path::PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
}

/// A recording that is under way.
#[derive(Debug)]
pub(crate) struct Recording {
    pid: u32,
    queries: Sender<OwnQuery>,
    collector: JoinHandle<Result<Profile, CollectError>>,
}

/// The process's recording and its shared memory.
struct State {
    /// The process that it was made in.
    pid: u32,
    memory: Option<OwnedFd>,
    is_recording: bool,
}

static STATE: Mutex<State> = Mutex::new(State { pid: 0, memory: None, is_recording: false });

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does what is mallow's own work, unrecorded.
pub(crate) fn unrecorded<T>(work: impl FnOnce() -> T) -> T {
    let mut answer = None;
    thread::unrecorded(|| answer = Some(work()));
    match answer {
        Some(answer) => answer,
        // `unrecorded` calls what it is given.
        None => std::process::abort(),
    }
}

impl Recording {
    /// Begins one; into a trace, or for sums only.
    pub(crate) fn begin(output: Option<Output>) -> Result<Recording, InsideError> {
        let recording = unrecorded(|| {
            // A call of ours comes by like any other.
            drop(std::hint::black_box(Box::new(0u8)));
            if !watchers::is_met() {
                return Err(InsideError::NoAllocator);
            }
            if watchers::is_taken() {
                return Err(InsideError::Taken);
            }
            let mut state = state();
            let pid = std::process::id();
            if state.pid != pid {
                *state = State { pid, memory: None, is_recording: false };
            }
            if state.is_recording {
                return Err(InsideError::UnderWay);
            }
            let memory = state.memory()?;
            let recording = Recording::start(pid, memory, output)?;
            state.is_recording = true;
            Ok(recording)
        })?;
        watchers::begin_inside();
        Ok(recording)
    }

    fn start(pid: u32, memory: OwnedFd, output: Option<Output>) -> Result<Recording, InsideError> {
        let (queries, receiver) = channel();
        let (begun, has_begun) = channel();
        let collect = move || {
            thread::become_ours();
            let options = OwnOptions { memory, output, queries: receiver, begun };
            let mut symbolizer = Symbolizer::new(SearchPaths::default());
            let outcome =
                collect_own(options, &mut |module, calls| symbolizer.resolve(&key_of(module), calls));
            if outcome.is_err() {
                // Nobody reads any more.
                watchers::end_inside();
            }
            outcome
        };
        let builder = std::thread::Builder::new().name("mallow".into());
        let collector = without_signals(|| builder.spawn(collect)).map_err(InsideError::NotBegun)?;
        match has_begun.recv() {
            Ok(()) => Ok(Recording { pid, queries, collector }),
            Err(_) => match collector.join() {
                Ok(Err(error)) => Err(error.into()),
                _ => Err(InsideError::NotBegun(std::io::Error::other("its thread has ended"))),
            },
        }
    }

    /// Asks the collector; none when it has ended.
    pub(crate) fn ask<T>(&self, query: impl FnOnce(Sender<T>) -> OwnQuery) -> Option<T> {
        if self.is_foreign() {
            return None;
        }
        unrecorded(|| {
            let (reply, answer) = channel();
            self.queries.send(query(reply)).ok()?;
            answer.recv().ok()
        })
    }

    /// Whether it is that of the process from which this one was forked.
    pub(crate) fn is_foreign(&self) -> bool {
        self.pid != std::process::id()
    }

    /// Ends it; gives the profile. In a forked child nothing happens: the recording is its parent's.
    pub(crate) fn end(self) -> Result<Option<Profile>, InsideError> {
        if self.is_foreign() {
            std::mem::forget(self);
            return Ok(None);
        }
        watchers::end_inside();
        unrecorded(|| {
            let _ = self.queries.send(OwnQuery::End);
            let outcome = self.collector.join();
            state().is_recording = false;
            match outcome {
                Ok(outcome) => Ok(Some(outcome?)),
                Err(_) => Err(InsideError::NotBegun(std::io::Error::other("its thread has ended"))),
            }
        })
    }
}

impl State {
    /// The shared memory, which the first recording makes.
    fn memory(&mut self) -> Result<OwnedFd, InsideError> {
        static FORKS: Once = Once::new();
        extern "C" fn forked() {
            watchers::end_inside();
        }
        // SAFETY: the function may be called in a child at any time.
        FORKS.call_once(|| unsafe { _ = libc::pthread_atfork(None, None, Some(forked)) });
        if self.memory.is_none() {
            let made = bootstrap::start_inside()
                .ok_or_else(|| InsideError::NotBegun(std::io::Error::other("there is no memory for it")))?;
            // SAFETY: it was made for us, and nobody else has it.
            self.memory = Some(unsafe { OwnedFd::from_raw_fd(made) });
        }
        let memory = self.memory.as_ref().map(OwnedFd::try_clone);
        memory.unwrap_or_else(|| Err(std::io::ErrorKind::OutOfMemory.into())).map_err(InsideError::NotBegun)
    }
}

/// Starts a thread that handles no signals: a handler of the program's would not be recorded there.
fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the sets are initialized by the first two calls, and the thread's own mask is set back.
    unsafe {
        let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
        let started = start();
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
        started
    }
}

/// What a module is called where names are looked up.
pub(crate) fn key_of(module: &Module) -> ModuleKey {
    ModuleKey { path: module.path.clone(), build_id: module.build_id.clone() }
}
