//! The program's marks: regions that begin and end, and the thread that waits at each.
//!
//! A mark takes effect where it stands among the events; what it asks for is answered between passes over the rings. The
//! end of a region is answered when what the region left behind stands still, because programs free in other threads
//! and later:
//!
//! - nothing is left: at once;
//! - something is left, and the thread that waits is the only one: at once, for nobody else could free it;
//! - otherwise when nothing has changed for a while. Waiting in vain is not repeated: a region that left the same at once
//!   and after the whole wait is given a tenth of it from then on.
//!
//! After [`SettleTimeout::limit`] waiting is given up, which the run then says.

use crate::channels::ChannelReader;
use crate::descriptors::{Descriptors, Snapshot};
use crate::mapping::Mapping;
use crate::region_sites::pruned;
use mallow_profile::{RegionMetrics, RegionTotals, Regions, StackId, ThreadIndex};
use mallow_wire::event::{self, Mark};
use mallow_wire::shared::COUNTED_VALUES;
use rustc_hash::FxHashMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The region from the call of `main` to the end of the process. A program's own names hold no zero.
pub(crate) const FROM_MAIN: &str = "\0main";
/// The region from the first begin of a region to the end of the process.
pub(crate) const FROM_FIRST: &str = "\0first";

/// How long the end of a region waits for frees that are in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettleTimeout {
    /// What is left must not change for so long.
    pub still: Duration,
    /// Then waiting is given up in any case.
    pub limit: Duration,
}

impl Default for SettleTimeout {
    fn default() -> SettleTimeout {
        SettleTimeout { still: Duration::from_millis(500), limit: Duration::from_secs(5) }
    }
}

/// What is counted of the processes of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// How long the ends of regions may take.
    pub settle_timeout: SettleTimeout,
    /// What is counted beside the regions.
    pub scope: Scope,
}

/// What is counted beside the regions that a program marks. Resolving the stacks of a whole process takes time, so it
/// is done only on request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// Nothing.
    #[default]
    Regions,
    /// Whole processes.
    Processes,
    /// From the call of `main`, and from the first begin of a region, to the end of a process.
    FromMain,
}

/// A run of a region, by stack.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) totals: RegionTotals,
    /// For each descriptor that was left open: who opened it, when that was seen.
    pub(crate) descriptors: Vec<Option<StackId>>,
    pub(crate) settled: bool,
    pub(crate) waited: Duration,
    /// Values that the program's runtime reported, each with its name.
    pub(crate) told: Vec<(String, u64)>,
}

/// How many values of a runtime are kept of one run.
const TOLD_MAX: usize = 16;
/// Regions that are open at a time: each event is added to all of them.
const OPEN_MAX: usize = 256;
/// Names of regions that are remembered for what was odd about them.
const ODD_NAMES_MAX: usize = 256;
/// Numbers of descriptors that any process may have.
const DESCRIPTORS_MAX: u64 = 1 << 20;

/// The marks of one process.
#[derive(Debug)]
pub(crate) struct Marks {
    pid: u32,
    counted: Counted,
    /// By thread: the name that its next mark has.
    texts: FxHashMap<ThreadIndex, Vec<u8>>,
    asked: Vec<Asked>,
    /// The descriptors at the begins of the open regions.
    before: Vec<Before>,
    descriptors: Descriptors,
    /// Regions for which waiting was in vain.
    in_vain: Vec<String>,
    /// Operations in one run, if the program has reported them.
    pub(crate) operations: Option<u64>,
    /// The runs that have ended.
    pub(crate) runs: Vec<Ran>,
    /// By thread: the run that it ended last.
    ended: FxHashMap<ThreadIndex, usize>,
    /// Ends without a begin.
    pub(crate) strays: Vec<String>,
    /// Why the process counts as damaged, if it does.
    beyond: Option<&'static str>,
    /// Memory that the runs take.
    runs_bytes: u64,
}

/// The descriptors when a region began.
#[derive(Debug)]
struct Before {
    name: String,
    begun: u64,
    snapshot: Snapshot,
}

/// A mark whose thread waits.
#[derive(Debug)]
struct Asked {
    thread: ThreadIndex,
    what: Mark,
    name: String,
    /// The region's number, at a begin.
    begun: u64,
    since: Instant,
    /// What was left at the last check, blocks and descriptors, and since when.
    left: Option<(u64, u64)>,
    unchanged_since: Instant,
    /// Whether what is left has changed during the wait.
    has_changed: bool,
}

/// What a region leaves, at one moment.
struct Left {
    blocks: u64,
    /// `None` while blocks are live: they show whether anything changes, and the kernel's table is slow to read.
    descriptors: Option<Vec<Option<StackId>>>,
}

impl Left {
    fn counts(&self) -> (u64, u64) {
        (self.blocks, self.descriptors.as_ref().map_or(0, |open| open.len() as u64))
    }
}

/// Whether a thread can continue.
enum Settling {
    NotYet,
    Settled,
    GivenUp,
}

impl Marks {
    pub(crate) fn new(pid: u32, counted: Counted) -> Marks {
        Marks {
            pid,
            counted,
            texts: FxHashMap::default(),
            asked: Vec::new(),
            before: Vec::new(),
            descriptors: Descriptors::default(),
            in_vain: Vec::new(),
            operations: None,
            runs: Vec::new(),
            ended: FxHashMap::default(),
            strays: Vec::new(),
            beyond: None,
            runs_bytes: 0,
        }
    }

    /// Returns why the process counts as damaged, if it does.
    pub(crate) fn beyond(&self) -> Option<&'static str> {
        self.beyond
    }

    /// Returns about how many bytes of memory this holds.
    pub(crate) fn held_bytes(&self) -> u64 {
        const ASKED_BYTES: usize = size_of::<Asked>() + event::MARK_NAME_BYTES_MAX;
        self.runs_bytes + ((self.asked.len() + self.texts.len()) * ASKED_BYTES) as u64
    }

    /// A piece of a name.
    pub(crate) fn text(&mut self, thread: ThreadIndex, piece: [u8; event::TEXT_BYTES]) {
        let text = self.texts.entry(thread).or_default();
        // A program that writes over its ring must not fill our memory.
        if text.len() < event::MARK_NAME_BYTES_MAX {
            text.extend_from_slice(&piece);
        }
    }

    /// A mark, in its place among the events.
    pub(crate) fn mark(&mut self, thread: ThreadIndex, number: u32, value: u64, regions: &mut Regions) {
        let Some(what) = Mark::of(number) else { return };
        let text = self.texts.remove(&thread).unwrap_or_default();
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        let name = String::from_utf8_lossy(&text[..end]).into_owned();
        let mut begun = 0;
        match what {
            Mark::Begin if regions.open_count() >= OPEN_MAX => {
                self.beyond = Some("it has more than 256 regions open at a time");
                return;
            }
            Mark::Begin => {
                self.begin_wide(FROM_FIRST, regions);
                regions.begin(&name);
                begun = self.descriptors.region_begins();
            }
            Mark::Operations => self.operations = Some(value),
            Mark::Main => self.begin_wide(FROM_MAIN, regions),
            Mark::Reported => {
                let run = self.ended.get(&thread).and_then(|run| self.runs.get_mut(*run));
                if let Some(run) = run.filter(|run| run.told.len() < TOLD_MAX) {
                    run.told.push((name.clone(), value));
                }
            }
            Mark::End | Mark::Settle => {}
            // Of a thread and no region: `drain` has them.
            Mark::CountBegins | Mark::CountEnds => return,
        }
        if what.wants_answer() {
            if self.awaits(thread) {
                self.beyond = Some("a thread of it that waits at a mark came to another one");
                return;
            }
            let now = Instant::now();
            self.asked.push(Asked {
                thread,
                what,
                name,
                begun,
                since: now,
                left: None,
                unchanged_since: now,
                has_changed: false,
            });
        }
    }

    /// Begins a region that lasts to the end of the process, once.
    fn begin_wide(&self, name: &str, regions: &mut Regions) {
        if self.counted.scope == Scope::FromMain && !regions.is_open(name) {
            regions.begin(name);
        }
    }

    /// Returns whether something beside the regions is counted.
    pub(crate) fn counts(&self, scope: Scope) -> bool {
        self.counted.scope == scope
    }

    /// The stacks that some run names.
    pub(crate) fn stacks(&self) -> impl Iterator<Item = StackId> + '_ {
        self.runs.iter().flat_map(|run| {
            let openers = run.descriptors.iter().flatten().copied();
            run.totals.sites.iter().map(|(stack, _)| *stack).chain(openers)
        })
    }

    /// A descriptor was opened.
    pub(crate) fn opened(&mut self, number: u64, stack: StackId) {
        if number < DESCRIPTORS_MAX {
            self.descriptors.opened(number, stack);
        }
    }

    /// Returns whether a thread's mark is not answered yet.
    pub(crate) fn awaits(&self, thread: ThreadIndex) -> bool {
        self.asked.iter().any(|asked| asked.thread == thread)
    }

    /// Answers what can be answered, between two passes.
    pub(crate) fn answer(&mut self, mapping: &Mapping, readers: &[ChannelReader], regions: &mut Regions) {
        for mut asked in std::mem::take(&mut self.asked) {
            let answered = match asked.what {
                Mark::Begin => {
                    let snapshot = Snapshot::of(self.pid);
                    self.before.push(Before { name: asked.name.clone(), begun: asked.begun, snapshot });
                    true
                }
                Mark::End => self.end(&mut asked, regions),
                _ => match innermost(regions) {
                    Some(name) => {
                        let counts = self.look(&name, regions).counts();
                        !matches!(self.settling(&mut asked, &name, counts), Settling::NotYet)
                    }
                    None => true,
                },
            };
            if answered {
                // Before the thread goes on: its first event within a region has a stack.
                self.want_stacks(mapping, regions);
                wake(mapping, readers, asked.thread);
            } else {
                self.asked.push(asked);
            }
        }
    }

    /// Lets the process take stacks only while a region is open, if nothing else is counted: a program may go through millions of
    /// stacks before its first region, and the table has no room for those of the region then.
    pub(crate) fn want_stacks(&self, mapping: &Mapping, regions: &Regions) {
        if self.counted.scope == Scope::Regions {
            let is_without = u32::from(regions.open_count() == 0);
            mapping.header().order.without_stacks.store(is_without, Ordering::Relaxed);
        }
    }

    /// Ends a region if it is time; true when the thread can go on.
    fn end(&mut self, asked: &mut Asked, regions: &mut Regions) -> bool {
        let name = asked.name.clone();
        if !regions.is_open(&name) {
            if self.strays.len() < ODD_NAMES_MAX && !self.strays.contains(&name) {
                self.strays.push(name);
            }
            return true;
        }
        let left = self.look(&name, regions);
        let settled = match self.settling(asked, &name, left.counts()) {
            Settling::NotYet => return false,
            Settling::Settled => true,
            Settling::GivenUp => false,
        };
        let waited = asked.since.elapsed();
        let is_in_vain = !asked.has_changed && waited >= self.counted.settle_timeout.still;
        if is_in_vain && self.in_vain.len() < ODD_NAMES_MAX && !self.in_vain.contains(&name) {
            self.in_vain.push(name.clone());
        }
        let descriptors = left.descriptors.unwrap_or_else(|| self.descriptors_of(&name));
        if let Some(at) = self.before.iter().rposition(|before| before.name == name) {
            self.before.remove(at);
        }
        if let Some(mut totals) = regions.end(&name) {
            totals.sites = pruned(totals.sites);
            self.ended.insert(asked.thread, self.runs.len());
            self.runs_bytes += run_bytes(&totals, &descriptors);
            self.runs.push(Ran { totals, descriptors, settled, waited, told: Vec::new() });
        }
        true
    }

    /// Returns what a region leaves now.
    fn look(&self, name: &str, regions: &Regions) -> Left {
        let blocks = regions.metrics(name).map_or(0, |metrics: RegionMetrics| metrics.remaining_blocks);
        Left { blocks, descriptors: (blocks == 0).then(|| self.descriptors_of(name)) }
    }

    /// The descriptors of a region that are open now.
    fn descriptors_of(&self, name: &str) -> Vec<Option<StackId>> {
        let before = self.before.iter().rev().find(|before| before.name == name);
        before.map_or_else(Vec::new, |before| {
            self.descriptors.left(before.begun, &before.snapshot, &Snapshot::of(self.pid))
        })
    }

    fn settling(&self, asked: &mut Asked, name: &str, left: (u64, u64)) -> Settling {
        let now = Instant::now();
        if left == (0, 0) {
            return Settling::Settled;
        }
        if asked.left != Some(left) {
            asked.has_changed |= asked.left.is_some();
            asked.left = Some(left);
            asked.unchanged_since = now;
        }
        let vain = self.in_vain.iter().any(|other| other == name);
        let still =
            if vain { self.counted.settle_timeout.still / 10 } else { self.counted.settle_timeout.still };
        if threads_of(self.pid) == Some(1) || now.duration_since(asked.unchanged_since) >= still {
            Settling::Settled
        } else if now.duration_since(asked.since) >= self.counted.settle_timeout.limit {
            Settling::GivenUp
        } else {
            Settling::NotYet
        }
    }
}

/// Returns the memory of a run in bytes.
fn run_bytes(totals: &RegionTotals, descriptors: &[Option<StackId>]) -> u64 {
    let parts =
        [size_of::<Ran>(), totals.name.len(), size_of_val(&totals.sites[..]), size_of_val(descriptors)];
    parts.iter().sum::<usize>() as u64
}

/// The program's own region that began last.
fn innermost(regions: &Regions) -> Option<String> {
    regions.names().into_iter().rev().find(|name| name != FROM_MAIN && name != FROM_FIRST)
}

/// Returns how many threads a process has.
fn threads_of(pid: u32) -> Option<usize> {
    Some(std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.count())
}

/// Answers threads that have counted what they allocate.
pub(crate) fn answer_counts(
    mapping: &Mapping,
    readers: &[ChannelReader],
    counted: &mut Vec<(ThreadIndex, Option<RegionMetrics>)>,
) {
    for (thread, metrics) in counted.drain(..) {
        let Some(channel) = readers.iter().position(|reader| reader.thread == thread) else { continue };
        let answer = &mapping.channel(channel).counted;
        let values = metrics.map_or([0; COUNTED_VALUES], values_of);
        answer.values.iter().zip(values).for_each(|(place, value)| place.store(value, Ordering::Relaxed));
        let value_count = if metrics.is_some() { COUNTED_VALUES as u64 } else { 0 };
        answer.value_count.store(value_count, Ordering::Relaxed);
        wake(mapping, readers, thread);
    }
}

/// In the order of [`mallow_wire::shared::Counted`].
fn values_of(metrics: RegionMetrics) -> [u64; COUNTED_VALUES] {
    let RegionMetrics {
        allocations,
        bytes,
        reallocations,
        peak_bytes,
        remaining_blocks,
        remaining_bytes,
        temporary,
    } = metrics;
    [allocations, bytes, reallocations, temporary, peak_bytes, remaining_blocks, remaining_bytes]
}

/// Tells a thread that its mark is answered.
fn wake(mapping: &Mapping, readers: &[ChannelReader], thread: ThreadIndex) {
    let Some(channel) = readers.iter().position(|reader| reader.thread == thread) else { return };
    let answered = &mapping.channel(channel).marks_answered;
    answered.fetch_add(1, Ordering::Release);
    let _ = rustix::thread::futex::wake(answered, rustix::thread::futex::Flags::empty(), 1);
}
