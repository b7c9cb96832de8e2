//! Resolves a sorted list of addresses of one module, with two workers when the list is long.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mallow_base::Frame;

use crate::binary::Binary;
use crate::dwarf::Worker;
use crate::load;
use crate::names::{Coverage, Names};
use crate::problem::{Problem, is_nameless};
use crate::reader::Slice;
use crate::sections::{Failure, caught};
use crate::split::{SplitDwarf, Store};
use crate::threads;

/// From this many addresses on a second worker pays for reading the unit headers a second time.
const SPLIT_FROM: usize = 2_000;
/// As much stack as a main thread has: parsers recurse into nested inlined calls.
const STACK_BYTES: usize = 8 << 20;
/// Pieces of the list that workers take in turn. Neighbours share DWARF units, so pieces should be few; units differ
/// in size, so they should be more than the workers.
const PIECES: usize = 16;

/// The answer of [`resolve`].
pub(crate) struct Resolved {
    /// One list of frames per address, in the same order.
    pub(crate) frames: Vec<Vec<Frame>>,
    /// What was missing or damaged.
    pub(crate) problem: Option<Problem>,
    /// Whether the debug information refers to other files that were opened.
    pub(crate) is_split: bool,
    /// Some of the debug information could not be read.
    pub(crate) is_damaged: bool,
}

/// Resolves `svmas`, which must be sorted, of the module `path`.
pub(crate) fn resolve(binary: &Binary, path: &str, svmas: &[u64]) -> Resolved {
    let parse = |bytes| caught(|| object::File::parse(bytes)).ok();
    let own = binary.own.as_deref().and_then(parse);
    let debug = binary.debug.as_deref().and_then(parse);
    let mini = binary.mini.as_deref().and_then(parse);
    let names = Names::new(path, [own, debug, mini]);
    let store = load::Store::default();
    let mut damage = None;
    let dwarf = load_dwarf(binary, &store, svmas).unwrap_or_else(|message| {
        damage = Some(message);
        None
    });
    let job = Job {
        has_dwarf: dwarf.is_some(),
        dwarf,
        names: &names,
        binary_path: binary_path(binary, path),
        is_split: AtomicBool::new(false),
    };
    let is_worth_two = job.has_dwarf && svmas.len() > SPLIT_FROM && threads::may_start();
    let (frames, later_damage) = if is_worth_two { job.run_split(svmas) } else { job.run(svmas) };
    let damage = damage.or(later_damage);
    let is_damaged = damage.is_some();
    let sentence = binary.problem.clone().or_else(|| damage.map(|damage| damaged(path, &damage)));
    let problem = sentence.map(Problem::Other).or_else(|| nameless(&names, job.has_dwarf, &frames));
    Resolved { frames, problem, is_split: job.is_split.into_inner(), is_damaged }
}

fn binary_path<'a>(binary: &'a Binary, path: &'a str) -> &'a Path {
    binary.own.as_ref().map_or(Path::new(path), |own| own.path())
}

fn load_dwarf<'a>(
    binary: &'a Binary,
    store: &'a load::Store,
    svmas: &[u64],
) -> Result<Option<Arc<gimli::Dwarf<Slice<'a>>>>, String> {
    let Some(mapped) = binary.with_dwarf() else { return Ok(None) };
    let loaded = caught(|| {
        let supplementary = binary.supplementary.as_deref().map(object::File::parse).transpose()?;
        load::load(mapped, supplementary.as_ref(), store, svmas)
    });
    loaded.map(|dwarf| Some(Arc::new(dwarf))).map_err(Failure::into_message)
}

/// The state that all workers share.
struct Job<'a, 'file> {
    dwarf: Option<Arc<gimli::Dwarf<Slice<'a>>>>,
    has_dwarf: bool,
    names: &'a Names<'file>,
    binary_path: &'a Path,
    is_split: AtomicBool,
}

/// Frames of one piece of the list, with its number.
type Piece = (usize, Vec<Vec<Frame>>);
/// Frames of the whole list, and the first damage.
type Outcome = (Vec<Vec<Frame>>, Option<String>);

impl<'file> Job<'_, 'file> {
    /// One worker, here.
    fn run(&self, svmas: &[u64]) -> Outcome {
        let pieces = [svmas];
        let (mut done, damage) = self.work(&pieces, &AtomicUsize::new(0));
        (done.pop().map(|(_, frames)| frames).unwrap_or_default(), damage)
    }

    /// Two workers over the pieces of the list; one of them here, so that there is a result even if no thread can be
    /// created.
    fn run_split(&self, svmas: &[u64]) -> Outcome {
        let pieces: Vec<&[u64]> = svmas.chunks(svmas.len().div_ceil(PIECES)).collect();
        let next = AtomicUsize::new(0);
        let (mut done, damage) = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
            let thread = thread.spawn_scoped(scope, || self.work(&pieces, &next)).ok();
            let (mut done, damage) = self.work(&pieces, &next);
            let (others, other_damage) = thread.map_or_else(<(Vec<Piece>, _)>::default, |thread| {
                // Parsers' panics were caught before; this one is a bug of ours and must not hide.
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            done.extend(others);
            (done, damage.or(other_damage))
        });
        done.sort_unstable_by_key(|&(piece, _)| piece);
        (done.into_iter().flat_map(|(_, frames)| frames).collect(), damage)
    }

    /// Takes pieces until none is left; returns each with its number.
    fn work(&self, pieces: &[&[u64]], next: &AtomicUsize) -> (Vec<Piece>, Option<String>) {
        let store = Store::default();
        let split = SplitDwarf::new(self.binary_path, &store, &self.is_split);
        let mut worker = Worker::new(self.dwarf.clone(), split, self.names);
        let mut done = Vec::new();
        loop {
            let piece = next.fetch_add(1, Ordering::Relaxed);
            let Some(svmas) = pieces.get(piece) else { break };
            done.push((piece, svmas.iter().map(|&svma| worker.resolve(svma)).collect()));
        }
        (done, worker.damage.take())
    }
}

fn damaged(path: &str, damage: &str) -> String {
    format!(
        "the debug information of {path} is damaged ({damage}); some of its names or lines are missing. Install or \
         build it again."
    )
}

/// Whether a module left addresses without names because it was stripped.
fn nameless(names: &Names<'_>, has_dwarf: bool, frames: &[Vec<Frame>]) -> Option<Problem> {
    if has_dwarf {
        return None;
    }
    match names.coverage() {
        Coverage::Nothing => Some(Problem::Symbolless),
        Coverage::Exported if frames.iter().any(|frames| is_nameless(frames)) => Some(Problem::Stripped),
        Coverage::Exported | Coverage::Whole => None,
    }
}
