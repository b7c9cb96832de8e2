//! Regions: what single threads allocate between two places of a program, while other threads do something else; and tests by it.
//!
//! A region is a scope of the recording under way, which all of them share: what the thread does that began it, and what is done for it on other
//! threads.

use crate::limit::Limit;
use crate::recording::{InsideError, ask, begin_region, end_region, key_of, unrecorded};
use crate::stats::Stats;
use mallow_base::Frame;
use mallow_collect::{OwnQuery, ScopeEnd};
use mallow_frames::plumbing;
use mallow_profile::{COUNTING_VERSION, Module, Profile, Recording as About, Site, SiteTotals, StackId};
use mallow_symbols::{SearchPaths, Symbolizer, without_threads};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts what this thread allocates from here on, for a test: as [`region()`], with a panic in place of an error.
///
/// # Panics
/// When nothing could be counted, because the program's allocator is not [`crate::Mallow`]: a test that counts nothing must not pass.
#[must_use = "the count ends when it is dropped"]
pub fn testing() -> Region {
    match region() {
        Ok(region) => region,
        Err(error) => panic!("mallow: {error}"),
    }
}

/// Counts what this thread allocates from here on. It may lie in a [`crate::profile`], or stand alone.
///
/// # Errors
/// When nothing could be counted.
pub fn region() -> Result<Region, InsideError> {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let recording = begin_region()?;
    let region = Region {
        recording,
        scope: NEXT.fetch_add(1, Ordering::Relaxed),
        tid: tid(),
        pid: std::process::id(),
        saved: None,
    };
    ask(recording, |reply| OwnQuery::Begin(region.scope, reply));
    region.share().enter();
    Ok(region)
}

/// A part of a program under way; what its thread allocates is counted until it is dropped.
#[derive(Debug)]
pub struct Region {
    recording: u64,
    scope: u64,
    tid: u32,
    /// The process that it was begun in.
    pid: u32,
    saved: Option<PathBuf>,
}

impl Region {
    /// A check that fails leaves a trace with its stacks here.
    #[must_use]
    pub fn saved_as(mut self, path: impl AsRef<Path>) -> Region {
        self.saved = Some(unrecorded(|| path.as_ref().to_owned()));
        self
    }

    /// What was allocated since the begin, by this thread and for it.
    ///
    /// # Panics
    /// When nothing is counted any more: [`Region::check`] has told stacks, the profile around the region has ended, or this is a forked child.
    pub fn stats(&self) -> Stats {
        match self.counted() {
            Some(stats) => stats,
            None => panic!("mallow: {OVER}"),
        }
    }

    /// The same; none when nothing is counted any more.
    pub fn counted(&self) -> Option<Stats> {
        ask(self.recording, |reply| OwnQuery::Scope(self.scope, reply)).flatten().map(Stats::from)
    }

    /// For other threads that do a part of the work.
    pub fn share(&self) -> Share {
        Share { recording: self.recording, scope: self.scope }
    }

    /// Whether these limits hold, each as `allocations<=45`. [`crate::assert_allocations!`] panics with the error.
    ///
    /// # Errors
    /// What does not hold, and the stacks that did it, with their lines. Nothing is counted any more then.
    pub fn check(&self, limits: &[&str]) -> Result<(), String> {
        let stats = self.counted().ok_or(OVER)?;
        let checked: Result<_, String> = unrecorded(|| {
            let limits = limits.iter().map(|limit| Limit::parse(limit)).collect::<Result<Vec<_>, _>>()?;
            let broken: Vec<String> = limits.iter().filter_map(|limit| limit.broken_by(&stats)).collect();
            let first = limits.iter().find(|limit| limit.broken_by(&stats).is_some());
            Ok(first.map(|first| (broken.join("\n"), first.is_of_bytes())))
        });
        let Some((broken, by_bytes)) = checked? else { return Ok(()) };
        let ended = ask(self.recording, |reply| OwnQuery::EndScope(self.scope, reply));
        Err(unrecorded(|| match ended {
            Some(ended) => self.failure_text(broken, by_bytes, ended),
            None => format!("{broken}\n({OVER})"),
        }))
    }

    fn failure_text(&self, broken: String, by_bytes: bool, ended: ScopeEnd) -> String {
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

const OVER: &str = "nothing of this region is counted any more: its stacks were told, the profile around it has ended, or this is a forked child";

impl Drop for Region {
    fn drop(&mut self) {
        // In a forked child it is its parent's.
        if self.pid == std::process::id() {
            self.share().leave(self.tid);
            let ended = ask(self.recording, |reply| OwnQuery::EndScope(self.scope, reply));
            unrecorded(|| drop(ended));
            end_region(self.recording);
        }
        drop(unrecorded(|| self.saved.take()));
    }
}

/// Lets other threads work for a region.
#[derive(Clone, Copy, Debug)]
pub struct Share {
    recording: u64,
    scope: u64,
}

impl Share {
    /// Does something whose allocations are the region's. When that has ended they are nobody's.
    pub fn run<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Within(Share, u32);
        impl Drop for Within {
            fn drop(&mut self) {
                self.0.leave(self.1);
            }
        }
        self.enter();
        let _within = Within(*self, tid());
        work()
    }

    fn enter(&self) {
        mallow_recorder::thread::make_known();
        ask(self.recording, |reply| OwnQuery::Enter(self.scope, tid(), reply));
    }

    fn leave(&self, tid: u32) {
        ask(self.recording, |reply| OwnQuery::Leave(self.scope, tid, reply));
    }
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
    let resolve = &mut |module: &Module, calls: &[_]| symbolizer.resolve(&key_of(module), calls);
    // A thread would be recorded where a profile is under way.
    without_threads(|| stacks.profile_of_scope(0, &summary, about, resolve))
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

/// Panics when a region's allocations do not keep to these limits, each a metric, a comparison and a number: `allocations<=45`, `bytes<10KiB`,
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
    ($region:expr, $($limit:expr),+ $(,)?) => {
        if let Err(broken) = $region.check(&[$($limit),+]) {
            panic!("{broken}");
        }
    };
}
