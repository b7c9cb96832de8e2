//! The recording of this process from inside: one at a time, with a collector on a thread of its own.
//!
//! A profile has one to itself, and regions share the one that there is: a profile's, or one that the first region begins and the last one ends. In a
//! forked child there is none, because its parent's is not its own. What this file does itself is not recorded, so that no figure is mallow's.

use mallow_collect::{CollectError, Output, OwnAhead, OwnOptions, OwnQuery, collect_own};
use mallow_profile::{Module, Profile};
use mallow_recorder::{bootstrap, thread, watchers};
use mallow_symbols::{Ahead, ModuleKey, SearchPaths, Symbolizer, without_threads};
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread::JoinHandle;

/// Why a profile stands back.
pub(crate) const OUTSIDE: &str = "the program runs under mallow, which records it from outside";

/// Why there is no recording from inside.
#[derive(Debug, thiserror::Error)]
pub enum InsideError {
    /// A recording is under way.
    #[error(
        "this process is being recorded from inside already; drop that profile before the next one begins"
    )]
    UnderWay,
    /// `mallow record` watches.
    #[error("{outside}; '{0}' is not written", outside = OUTSIDE)]
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
struct Recording {
    queries: Sender<OwnQuery>,
    collector: JoinHandle<Result<Profile, CollectError>>,
}

/// Whose recording it is.
#[derive(Debug)]
enum Owner {
    /// A profile's, which is written to this file when it ends, unless the collector writes it itself.
    Profile(Option<PathBuf>),
    /// That of regions: the first one begins it, and the last one ends it.
    Regions,
}

/// The recording under way. Here and not in a guard, because `exit` drops no guards, and regions share it.
#[derive(Debug)]
struct Current {
    /// Tells it from those before it.
    number: u64,
    recording: Recording,
    owner: Owner,
    regions: usize,
}

impl Current {
    fn begin(output: Option<Output>, owner: Owner) -> Result<Current, InsideError> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        // What regions leave is asked for while they last.
        let is_named = matches!(owner, Owner::Profile(_));
        let recording = Recording::begin(output, is_named)?;
        Ok(Current { number: NEXT.fetch_add(1, Ordering::Relaxed), recording, owner, regions: 0 })
    }
}

/// What one process has. A forked child gets its own: nobody might ever release a lock of its parent's.
#[derive(Debug)]
struct OfProcess {
    pid: u32,
    current: Mutex<Option<Current>>,
    /// The shared memory, which the first recording makes and every later one uses.
    memory: Mutex<Option<OwnedFd>>,
}

fn of_process() -> &'static OfProcess {
    static OF_PROCESS: AtomicPtr<OfProcess> = AtomicPtr::new(std::ptr::null_mut());
    let pid = std::process::id();
    loop {
        let known = OF_PROCESS.load(Ordering::Acquire);
        // SAFETY: null, or a box that was leaked.
        if let Some(known) = unsafe { known.as_ref() }.filter(|known| known.pid == pid) {
            return known;
        }
        let fresh = unrecorded(|| {
            let (current, memory) = (Mutex::new(None), Mutex::new(None));
            Box::into_raw(Box::new(OfProcess { pid, current, memory }))
        });
        if OF_PROCESS.compare_exchange(known, fresh, Ordering::AcqRel, Ordering::Acquire).is_err() {
            // SAFETY: another thread was faster, and nobody has seen this one.
            unrecorded(|| drop(unsafe { Box::from_raw(fresh) }));
        }
    }
}

fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

fn current() -> MutexGuard<'static, Option<Current>> {
    locked(&of_process().current)
}

/// Begins a profile, which the collector writes to `output`, or which is written to `dhat` when it ends; gives the recording's number.
pub(crate) fn begin_profile(output: Option<Output>, dhat: Option<PathBuf>) -> Result<u64, InsideError> {
    let mut current = current();
    if current.is_some() {
        unrecorded(|| drop((output, dhat)));
        return Err(InsideError::UnderWay);
    }
    Ok(current.insert(Current::begin(output, Owner::Profile(dhat))?).number)
}

/// Ends the profile under way, if there is one, and it is that of this number; gives it if it is still to be written, and where.
pub(crate) fn end_profile(number: Option<u64>) -> Result<Option<(Profile, PathBuf)>, InsideError> {
    let mut current = current();
    let is_it =
        |it: &Current| matches!(it.owner, Owner::Profile(_)) && number.is_none_or(|it_is| it_is == it.number);
    if !current.as_ref().is_some_and(is_it) {
        return Ok(None);
    }
    let Some(Current { recording, owner: Owner::Profile(dhat), .. }) = current.take() else {
        return Ok(None);
    };
    let profile = recording.end()?;
    Ok(dhat.map(|path| (profile, path)))
}

/// A region begins, in the recording under way or in one of its own; gives the recording's number.
pub(crate) fn begin_region() -> Result<u64, InsideError> {
    let mut current = current();
    let under_way = match &mut *current {
        Some(current) => current,
        empty => empty.insert(Current::begin(None, Owner::Regions)?),
    };
    under_way.regions += 1;
    Ok(under_way.number)
}

/// A region ends that was begun in the recording of this number.
pub(crate) fn end_region(number: u64) {
    let mut current = current();
    let Some(it) = current.as_mut().filter(|it| it.number == number) else { return };
    it.regions = it.regions.saturating_sub(1);
    if it.regions == 0
        && matches!(it.owner, Owner::Regions)
        && let Some(last) = current.take()
    {
        let _ = last.recording.end();
    }
}

/// Asks the collector of the recording of this number; none when it is not under way in this process.
pub(crate) fn ask<T>(number: u64, query: impl FnOnce(Sender<T>) -> OwnQuery) -> Option<T> {
    let queries = current().as_ref().filter(|it| it.number == number)?.recording.queries.clone();
    unrecorded(|| {
        let (reply, answer) = channel();
        queries.send(query(reply)).ok()?;
        drop(queries);
        answer.recv().ok()
    })
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
    /// Begins one; into a trace, or for sums only. At its end names are looked up if somebody wants them.
    fn begin(output: Option<Output>, is_named: bool) -> Result<Recording, InsideError> {
        let recording = unrecorded(|| {
            // A call of ours comes by like any other.
            drop(std::hint::black_box(Box::new(0u8)));
            if !watchers::is_met() {
                return Err(InsideError::NoAllocator);
            }
            if watchers::is_taken() {
                return Err(InsideError::Taken);
            }
            Recording::start(memory()?, output, is_named)
        })?;
        watchers::begin_inside();
        Ok(recording)
    }

    fn start(memory: OwnedFd, output: Option<Output>, is_named: bool) -> Result<Recording, InsideError> {
        let (queries, receiver) = channel();
        let (begun, has_begun) = channel();
        let collect = move || {
            thread::become_ours();
            let found = Ahead::default();
            let look_ahead = is_named.then(|| look_ahead(found.clone()));
            let options = OwnOptions { memory, output, queries: receiver, begun, look_ahead };
            let mut symbolizer = Symbolizer::new(SearchPaths::default()).sharing(found);
            let outcome = collect_own(options, &mut |module, calls| match is_named {
                true => symbolizer.resolve(&key_of(module), calls),
                false => Vec::new(),
            });
            if outcome.is_err() {
                // Nobody reads any more.
                watchers::end_inside();
            }
            outcome
        };
        let builder = std::thread::Builder::new().name("mallow".into());
        let collector = without_signals(|| builder.spawn(collect)).map_err(InsideError::NotBegun)?;
        match has_begun.recv() {
            Ok(()) => Ok(Recording { queries, collector }),
            Err(_) => match collector.join() {
                Ok(Err(error)) => Err(error.into()),
                _ => Err(InsideError::NotBegun(std::io::Error::other("its thread has ended"))),
            },
        }
    }

    /// Ends it; gives the profile.
    fn end(self) -> Result<Profile, InsideError> {
        watchers::end_inside();
        unrecorded(|| {
            let _ = self.queries.send(OwnQuery::End);
            match self.collector.join() {
                Ok(outcome) => Ok(outcome?),
                Err(_) => Err(InsideError::NotBegun(std::io::Error::other("its thread has ended"))),
            }
        })
    }
}

/// The shared memory.
fn memory() -> Result<OwnedFd, InsideError> {
    static FORKS: Once = Once::new();
    extern "C" fn forked() {
        watchers::end_inside();
    }
    // SAFETY: the function may be called in a child at any time.
    FORKS.call_once(|| unsafe { _ = libc::pthread_atfork(None, None, Some(forked)) });
    let mut memory = locked(&of_process().memory);
    if memory.is_none() {
        let made = bootstrap::start_inside()
            .ok_or_else(|| InsideError::NotBegun(std::io::Error::other("there is no memory for it")))?;
        // SAFETY: it was made for us, and nobody else has it.
        *memory = Some(unsafe { OwnedFd::from_raw_fd(made) });
    }
    let file = memory.as_ref().map(OwnedFd::try_clone);
    file.unwrap_or_else(|| Err(std::io::ErrorKind::OutOfMemory.into())).map_err(InsideError::NotBegun)
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

/// Looks names up while the program is recorded, so it starts no threads: they would be recorded.
fn look_ahead(found: Ahead) -> OwnAhead {
    let mut symbolizer = Symbolizer::new(SearchPaths::default()).sharing(found);
    let look_up = move |module: &Module, svmas: &[u64]| {
        without_threads(|| symbolizer.look_ahead(&key_of(module), svmas));
    };
    OwnAhead { first: thread::become_ours, look_up: Box::new(look_up) }
}

/// What a module is called where names are looked up.
pub(crate) fn key_of(module: &Module) -> ModuleKey {
    ModuleKey { path: module.path.clone(), build_id: module.build_id.clone() }
}
