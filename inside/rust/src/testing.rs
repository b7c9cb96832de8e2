//! Tests of what single threads allocate, while other tests run beside them.
//!
//! All tests of a process share one recording, which the first one begins and the last one ends. A test is a scope of it: what its thread
//! does, and what is done for it on other threads.

use crate::limit::Limit;
use crate::recording::{InsideError, Recording, key_of, unrecorded};
use crate::stats::Stats;
use mallow_base::Frame;
use mallow_collect::{OwnQuery, ScopeEnd};
use mallow_frames::plumbing;
use mallow_profile::{COUNTING_VERSION, Profile, Recording as About, Site, SiteTotals, StackId};
use mallow_symbols::{SearchPaths, Symbolizer};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The recording of all tests, and how many there are.
struct Shared {
    recording: Recording,
    tests: usize,
}

static SHARED: Mutex<Option<Shared>> = Mutex::new(None);

fn shared() -> MutexGuard<'static, Option<Shared>> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ask<T>(query: impl FnOnce(Sender<T>) -> OwnQuery) -> Option<T> {
    shared().as_ref().and_then(|shared| shared.recording.ask(query))
}

/// Counts what this thread allocates from here on.
///
/// # Panics
/// When the program's allocator is not [`crate::Mallow`], or a [`crate::profile`] is under way: a test that counts nothing must not pass.
#[must_use = "the count ends when it is dropped"]
pub fn testing() -> Testing {
    match Testing::begin() {
        Ok(testing) => testing,
        Err(error) => panic!("mallow: {error}"),
    }
}

/// A test under way; what its thread allocates is counted until it is dropped.
#[derive(Debug)]
pub struct Testing {
    scope: u64,
    tid: u32,
    saved: Option<PathBuf>,
}

impl Testing {
    /// As [`testing`], with an error in place of a panic.
    ///
    /// # Errors
    /// When nothing could be counted.
    pub fn begin() -> Result<Testing, InsideError> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        {
            let mut shared = shared();
            if shared.as_ref().is_some_and(|shared| shared.recording.is_foreign()) {
                // The parent's, which forked in the middle of a test.
                std::mem::forget(shared.take());
            }
            match &mut *shared {
                Some(shared) => shared.tests += 1,
                empty => *empty = Some(Shared { recording: Recording::begin(None)?, tests: 1 }),
            }
        }
        let testing = Testing { scope: NEXT.fetch_add(1, Ordering::Relaxed), tid: tid(), saved: None };
        ask(|reply| OwnQuery::Begin(testing.scope, reply));
        enter(testing.scope);
        Ok(testing)
    }

    /// A check that fails leaves a trace with its stacks here.
    #[must_use]
    pub fn saved_as(mut self, path: impl AsRef<Path>) -> Testing {
        self.saved = Some(unrecorded(|| path.as_ref().to_owned()));
        self
    }

    /// What was allocated since the begin, by this thread and for it.
    pub fn stats(&self) -> Stats {
        ask(|reply| OwnQuery::Scope(self.scope, reply)).map(Stats::from).unwrap_or_default()
    }

    /// For other threads that do a part of the work.
    pub fn share(&self) -> Share {
        Share { scope: self.scope }
    }

    /// Whether these limits hold, each as `allocations<=45`. [`crate::assert_allocations!`] panics with the error.
    ///
    /// # Errors
    /// What does not hold, and the stacks that did it, with their lines. Nothing is counted any more then.
    pub fn check(&self, limits: &[&str]) -> Result<(), String> {
        let stats = self.stats();
        let checked: Result<_, String> = unrecorded(|| {
            let limits = limits.iter().map(|limit| Limit::parse(limit)).collect::<Result<Vec<_>, _>>()?;
            let broken: Vec<String> = limits.iter().filter_map(|limit| limit.broken_by(&stats)).collect();
            let first = limits.iter().find(|limit| limit.broken_by(&stats).is_some());
            Ok(first.map(|first| (broken.join("\n"), first.is_of_bytes())))
        });
        let Some((broken, by_bytes)) = checked? else { return Ok(()) };
        let ended = ask(|reply| OwnQuery::EndScope(self.scope, reply));
        Err(unrecorded(|| match ended {
            Some(ended) => self.told(broken, by_bytes, ended),
            None => format!("{broken}\n(the recording has ended)"),
        }))
    }

    fn told(&self, broken: String, by_bytes: bool, ended: ScopeEnd) -> String {
        let profile = profile_of(ended);
        let mut text = broken;
        stacks(&mut text, &profile, by_bytes);
        if let Some(path) = &self.saved {
            let line = match save(&profile, path) {
                Ok(()) => format!("the trace is '{0}': mallow report {0}", path.display()),
                Err(cause) => format!("cannot write the trace '{}': {cause}", path.display()),
            };
            let _ = write!(text, "\n{line}");
        }
        text
    }
}

impl Drop for Testing {
    fn drop(&mut self) {
        leave(self.scope, self.tid);
        drop(ask(|reply| OwnQuery::EndScope(self.scope, reply)));
        let mut shared = shared();
        if shared.as_ref().is_some_and(|shared| shared.recording.is_foreign()) {
            return;
        }
        if let Some(it) = shared.as_mut() {
            it.tests -= 1;
            if it.tests == 0
                && let Some(last) = shared.take()
            {
                let _ = last.recording.end();
            }
        }
        drop(unrecorded(|| self.saved.take()));
    }
}

/// Lets other threads work for a test.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    scope: u64,
}

impl Share {
    /// Does something whose allocations are the test's. When the test has ended they are nobody's.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Within(u64, u32);
        impl Drop for Within {
            fn drop(&mut self) {
                leave(self.0, self.1);
            }
        }
        enter(self.scope);
        let _within = Within(self.scope, tid());
        work()
    }
}

fn enter(scope: u64) {
    mallow_recorder::thread::make_known();
    ask(|reply| OwnQuery::Enter(scope, tid(), reply));
}

fn leave(scope: u64, tid: u32) {
    ask(|reply| OwnQuery::Leave(scope, tid, reply));
}

fn tid() -> u32 {
    // SAFETY: it only asks.
    unsafe { libc::gettid() as u32 }
}

fn profile_of(ended: ScopeEnd) -> Profile {
    let ScopeEnd { summary, mut stacks } = ended;
    let about = About {
        command: std::env::args().collect(),
        counting_version: COUNTING_VERSION,
        recorder_version: env!("CARGO_PKG_VERSION").to_owned(),
        ..About::default()
    };
    let mut symbolizer = Symbolizer::new(SearchPaths::default());
    stacks
        .profile_of_scope(0, &summary, about, &mut |module, calls| symbolizer.resolve(&key_of(module), calls))
}

/// How many stacks are told, and frames of each.
const STACKS_TOLD: usize = 8;
const FRAMES_TOLD: usize = 12;

fn stacks(text: &mut String, profile: &Profile, by_bytes: bool) {
    let weight = |totals: &SiteTotals| if by_bytes { totals.bytes } else { totals.allocations };
    let mut sites: Vec<&Site> = profile.sites.iter().filter(|site| site.totals.allocations > 0).collect();
    sites.sort_by_key(|site| std::cmp::Reverse(weight(&site.totals)));
    for site in sites.iter().take(STACKS_TOLD) {
        let totals = &site.totals;
        let _ = write!(text, "\n  {} allocations, {} bytes, at", totals.allocations, totals.bytes);
        for line in frames(profile, site.stack).iter().take(FRAMES_TOLD) {
            let _ = write!(text, "\n    {line}");
        }
    }
    if sites.len() > STACKS_TOLD {
        let _ = write!(text, "\n  and {} other stacks", sites.len() - STACKS_TOLD);
    }
}

/// The frames of a stack, innermost first, without those that carry an allocation on.
fn frames(profile: &Profile, stack: Option<StackId>) -> Vec<String> {
    let mut frames: Vec<Frame> = Vec::new();
    let mut at = stack;
    while let Some(node) = at {
        let node = &profile.stacks.nodes[node.0 as usize];
        frames.extend_from_slice(&profile.stacks.locations[node.location.0 as usize].frames);
        at = node.parent;
    }
    let line = |frame: &Frame| match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{} ({file}:{line})", frame.function),
        _ => frame.function.clone(),
    };
    frames[plumbing::leading(&frames, &[])..].iter().map(line).collect()
}

fn save(profile: &Profile, path: &Path) -> std::io::Result<()> {
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    mallow_trace::write_profile(profile, "mallow", &mut file)?;
    std::io::Write::flush(&mut file)
}

/// Panics when a test's allocations do not keep to these limits, each a metric, a comparison and a number: `allocations<=45`, `bytes<10KiB`,
/// `live_blocks==0`. The metrics are the fields of [`crate::Stats`].
///
/// ```
/// use std::alloc::System;
///
/// #[global_allocator]
/// static ALLOC: mallow_alloc::Mallow<System> = mallow_alloc::Mallow::new(System);
///
/// let test = mallow_alloc::testing();
/// let text = std::hint::black_box(vec![1, 2, 3]);
/// mallow_alloc::assert_allocations!(test, "allocations==1", "bytes<=12");
/// drop(text);
/// mallow_alloc::assert_allocations!(test, "live_blocks==0");
/// ```
#[macro_export]
macro_rules! assert_allocations {
    ($testing:expr, $($limit:expr),+ $(,)?) => {
        if let Err(broken) = $testing.check(&[$($limit),+]) {
            panic!("{broken}");
        }
    };
}
