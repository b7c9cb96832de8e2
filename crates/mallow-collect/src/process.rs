//! One recorded process: its shared memory, its part of the profile, its chunks of the trace.

use crate::ahead::Said;
use crate::clock::Clock;
use crate::drain::{LaneReader, Pass};
use crate::ending::Watch;
use crate::error::CollectError;
use crate::heap::{Executables, HeapFigures, HeapSource, MemoryWatch};
use crate::lanes;
use crate::mapping::Mapping;
use crate::marks::{Counted, FROM_FIRST, FROM_MAIN, Marks, Scope};
use crate::pairing::Pairing;
use crate::regions::{of_folded, pruned};
use crate::session::Arrival;
use crate::stack_table::StackTable;
use crate::stacks::StackNumbers;
use crate::starts::Starts;
use crate::trace_file::TraceFile;
use crate::unseen;
use mallow_profile::{Exit, Fold, Folded, RegionFigures, RegionTotals, Sample, StackId, ThreadIndex};
use mallow_trace::{self as trace, MappedModule, ThreadName};
use mallow_wire::shared::Header;
use rustc_hash::FxHashSet;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// A process under recording.
#[derive(Debug)]
pub(crate) struct Recorded {
    /// Its index in the trace.
    pub(crate) index: u32,
    /// Its process id as we see it.
    pub(crate) pid: u32,
    mapping: Mapping,
    watch: Watch,
    pairing: Pairing,
    /// None when nobody asked for the program's marks.
    marks: Option<Marks>,
    start: trace::ProcessStart,
    stacks: StackNumbers,
    /// What its names were asked for, of those that are looked up while it runs.
    pub(crate) said: Said,
    modules: Vec<MappedModule>,
    /// Generation, start and end of each.
    modules_met: FxHashSet<(u64, u64, u64)>,
    modules_offset: usize,
    modules_written: usize,
    readers: Vec<LaneReader>,
    /// How often a ring held what no recorder writes.
    damages: u64,
    /// When the rings were read last.
    drained_us: u64,
    /// Whether [`BUSY_WORDS_PER_US`] came since the time before.
    is_busy: bool,
    /// None when threads that use a lane one after the other count as one.
    threads: Option<Vec<ThreadName>>,
    threads_written: usize,
    samples: Vec<Sample>,
    executable: Option<PathBuf>,
    memory: MemoryWatch,
    /// Notes of programs that it starts, as many as were taken.
    starts_seen: u32,
}

/// What is kept of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Its events, and not only sums.
    pub(crate) events: bool,
    /// Its threads by themselves. A server may start one for each request, for days, so that they cannot all be kept.
    pub(crate) threads: bool,
    /// Its regions, and what else is counted.
    pub(crate) regions: Option<Counted>,
}

/// What remains of a process after its end.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) index: u32,
    pub(crate) start: trace::ProcessStart,
    pub(crate) end: trace::ProcessEnd,
    pub(crate) threads: Vec<ThreadName>,
    pub(crate) marks: Option<Marks>,
    /// The sites of the whole process, when they are counted.
    pub(crate) whole: Vec<(StackId, RegionFigures)>,
    /// From `main`, and from the first region's begin, to the end.
    pub(crate) wide: [Option<RegionTotals>; 2],
    /// Regions that were open at the end.
    pub(crate) unfinished: Vec<String>,
    /// Why its figures are not those of its heap, if they are not.
    pub(crate) blind: Option<String>,
    pub(crate) folded: Folded,
    /// Every node of its stacks.
    pub(crate) stacks: StackTable,
    pub(crate) modules: Vec<MappedModule>,
    /// Its program, where regions are counted.
    pub(crate) executable: Option<PathBuf>,
}

impl Ended {
    /// The numbers of all addresses on its stacks.
    pub(crate) fn all_addresses(&self) -> Vec<u32> {
        (0..self.stacks.address_count() as u32).collect()
    }

    /// The numbers of the addresses on the stacks that were counted.
    pub(crate) fn counted_addresses(&self) -> Vec<u32> {
        let stacks = &self.stacks;
        let mut seen = vec![false; stacks.len()];
        let mut counted = vec![false; stacks.address_count()];
        let wide = self.wide.iter().flatten().flat_map(|totals| &totals.sites);
        let sites = self.whole.iter().chain(wide).map(|(stack, _)| *stack);
        for stack in self.marks.iter().flat_map(Marks::stacks).chain(sites) {
            let mut at = Some(stack.0);
            while let Some(node) = at.filter(|at| seen.get(*at as usize) == Some(&false)) {
                seen[node as usize] = true;
                stacks.address(node).into_iter().for_each(|address| counted[address as usize] = true);
                at = stacks.parent(node);
            }
        }
        (0..).zip(counted).filter(|(_, counted)| *counted).map(|(address, _)| address).collect()
    }
}

#[cfg(test)]
impl Ended {
    /// One with these modules and stacks.
    pub(crate) fn for_test(modules: Vec<MappedModule>, nodes: &[trace::StackNode]) -> Ended {
        Ended {
            index: 0,
            start: trace::ProcessStart::default(),
            end: trace::ProcessEnd::default(),
            threads: Vec::new(),
            marks: None,
            whole: Vec::new(),
            wide: [None, None],
            unfinished: Vec::new(),
            blind: None,
            folded: Folded::default(),
            stacks: StackTable::for_test(nodes),
            modules,
            executable: None,
        }
    }
}

impl Recorded {
    /// Takes a process in, and writes its first chunk.
    pub(crate) fn begin(
        arrival: Arrival,
        index: u32,
        wanted: Wanted,
        executables: &mut Executables,
        clock: &Clock,
        file: &mut TraceFile,
    ) -> Result<Recorded, CollectError> {
        let mapping = Mapping::new(&arrival.memory)?;
        let header = mapping.header();
        let parent_pid = header.parent_pid;
        let pid = arrival.pid;
        let start =
            trace::ProcessStart { pid, parent_pid, command: arrival.command, started_us: clock.now_us() };
        file.put(index, &start)?;
        let mut pairing = Pairing::new(wanted.events);
        if let Some(counted) = wanted.regions {
            pairing.watch_regions();
            // A forked child is past the call of `main` when it begins.
            if counted.scope == Scope::FromMain
                && header.is_forked != 0
                && let Some(regions) = pairing.regions()
            {
                regions.begin(FROM_MAIN);
            }
        }
        let memory = MemoryWatch::new(pid, mapping.executable(), executables);
        Ok(Recorded {
            index,
            pid,
            mapping,
            watch: Watch::new(pid),
            pairing,
            marks: wanted.regions.map(|counted| Marks::new(pid, counted)),
            start,
            stacks: StackNumbers::default(),
            said: Said::default(),
            modules: Vec::new(),
            modules_met: FxHashSet::default(),
            modules_offset: 0,
            modules_written: 0,
            readers: Vec::new(),
            damages: 0,
            drained_us: 0,
            is_busy: false,
            threads: wanted.threads.then(Vec::new),
            threads_written: 0,
            samples: Vec::new(),
            // Who marks a region waits for us at its begin, so it is there still.
            executable: wanted.regions.and_then(|_| std::fs::read_link(format!("/proc/{pid}/exe")).ok()),
            memory,
            starts_seen: 0,
        })
    }

    /// What it shares with us.
    pub(crate) fn header(&self) -> &Header {
        self.mapping.header()
    }

    /// Its figures up to now.
    pub(crate) fn fold(&self) -> &Fold {
        self.pairing.fold()
    }

    /// Its command line, blanks between arguments.
    pub(crate) fn command(&self) -> &str {
        &self.start.command
    }

    /// The executable and libraries that stood on its stacks.
    pub(crate) fn modules(&self) -> &[MappedModule] {
        &self.modules
    }

    /// Every node of its stacks.
    pub(crate) fn stacks(&self) -> &StackTable {
        self.stacks.table()
    }

    /// Whether all of its threads have ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.watch.has_ended()
    }

    /// Takes the notes of programs that it starts.
    pub(crate) fn take_starts(&mut self, starts: &mut Starts) {
        starts.take(&self.mapping, &mut self.starts_seen);
    }

    /// Reads the rings up to a time stamp; gives the number of words read.
    pub(crate) fn drain(
        &mut self,
        clock: &Clock,
        until_tsc: u64,
        file: &mut TraceFile,
    ) -> Result<u64, CollectError> {
        self.mapping.beat(self.is_busy);
        self.meet_threads();
        self.read_modules();
        let (mut outcome, index) = (Ok(()), self.index);
        let mut flush = |pairing: &mut Pairing, stacks: &mut StackNumbers| {
            if outcome.is_ok()
                && pairing.events().is_some_and(|events| events.len() >= trace::EVENTS_PER_CHUNK)
            {
                outcome = write_events(index, pairing, stacks, file);
            }
        };
        let mut pass = Pass {
            mapping: &self.mapping,
            clock,
            until_tsc,
            pairing: &mut self.pairing,
            stacks: &mut self.stacks,
            marks: self.marks.as_mut(),
            flush: &mut flush,
        };
        let passed = pass.run(&mut self.readers);
        self.damages += passed.damages;
        let now_us = clock.now_us();
        self.is_busy = passed.words >= now_us.saturating_sub(self.drained_us) * BUSY_WORDS_PER_US;
        self.drained_us = now_us;
        if let (Some(marks), Some(regions)) = (&mut self.marks, self.pairing.regions()) {
            marks.answer(&self.mapping, &self.readers, regions);
        }
        outcome.map(|()| passed.words)
    }

    /// Finds out who owns the lanes in use.
    fn meet_threads(&mut self) {
        for index in 0..self.mapping.lanes_high() {
            let lane = self.mapping.lane(index);
            // The id is written behind the serial number.
            let tid = lane.tid.load(Ordering::Acquire);
            let taken_serial = lane.taken_serial.load(Ordering::Relaxed);
            if self.readers.len() <= index {
                self.readers.push(LaneReader { thread: ThreadIndex(0), taken_serial: 0, tail: 0, tsc: 0 });
            }
            if tid == lanes::NOBODY || self.readers[index].taken_serial == taken_serial {
                continue;
            }
            let number = self.threads.as_ref().map_or(index, Vec::len) as u32;
            self.readers[index].taken_serial = taken_serial;
            self.readers[index].thread = ThreadIndex(number);
            if let Some(threads) = &mut self.threads {
                threads.push(ThreadName { index: number, tid, name: thread_name(self.pid, tid) });
            }
        }
    }

    /// Gives back the lanes of threads that have ended and are read to the end. An answer that is still to come must not
    /// reach the lane's next owner.
    pub(crate) fn recycle_lanes(&self) {
        lanes::recycle(&self.mapping, self.pid, |index, serial| {
            self.readers.get(index).is_some_and(|reader| {
                reader.taken_serial == serial
                    && !self.marks.as_ref().is_some_and(|marks| marks.awaits(reader.thread))
                    && self.mapping.lane(index).head.load(Ordering::Acquire) == reader.tail
            })
        });
    }

    /// Whether some thread waits for a lane.
    pub(crate) fn wants_lanes(&self) -> bool {
        self.mapping.header().lanes_wanted.load(Ordering::Relaxed) > 0
    }

    fn read_modules(&mut self) {
        while let Some((module, next)) = self.mapping.module(self.modules_offset) {
            // Two threads that meet one at the same time both say so.
            if self.modules_met.insert((module.generation, module.start_avma, module.end_avma)) {
                self.modules.push(module);
            }
            self.modules_offset = next;
        }
    }

    /// Notes how much memory is resident, and what names threads have given themselves.
    pub(crate) fn sample(&mut self, clock: &Clock) {
        if let Some(resident) = self.memory.resident() {
            self.samples.push(Sample { time_us: clock.now_us(), rss_bytes: resident.bytes });
            let recorded_bytes = || self.pairing.fold().totals().peak_bytes;
            self.memory.look(resident, self.mapping.header(), recorded_bytes);
        }
    }

    /// How much memory it has that could be a heap, and what of it was recorded.
    pub(crate) fn heap_figures(&self) -> HeapFigures {
        self.memory.figures(self.header(), self.fold().totals().peak_bytes)
    }

    /// Where its memory comes from, by what is known up to now.
    pub(crate) fn heap_source(&self) -> HeapSource {
        let modules = self.modules.iter().map(|module| module.path.as_str());
        self.memory.source(&self.heap_figures(), self.header(), modules)
    }

    /// What is to be said of that at its end: whether the figures are not those of its heap, and the sentence.
    pub(crate) fn heap_sentence(&self) -> Option<(bool, String)> {
        self.memory.settle();
        let source = self.heap_source();
        let sentence = source.sentence(self.pid, &self.heap_figures())?;
        Some((source.is_blind(), sentence))
    }

    /// Writes everything that is not in the trace yet.
    pub(crate) fn write(&mut self, file: &mut TraceFile) -> Result<(), CollectError> {
        write_events(self.index, &mut self.pairing, &mut self.stacks, file)?;
        if self.modules_written < self.modules.len() {
            let modules = self.modules[self.modules_written..].to_vec();
            file.put(self.index, &trace::Modules { modules })?;
            self.modules_written = self.modules.len();
        }
        let threads = self.threads.as_deref().unwrap_or_default();
        if self.threads_written < threads.len() {
            file.put(self.index, &trace::Threads { threads: threads[self.threads_written..].to_vec() })?;
            self.threads_written = threads.len();
        }
        if !self.samples.is_empty() {
            file.put(self.index, &trace::Samples { samples: std::mem::take(&mut self.samples) })?;
        }
        Ok(())
    }

    /// How it ended, when somebody other than its parent may know.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.watch.exit(self.mapping.header())
    }

    /// Ends it at once.
    pub(crate) fn kill(&self) {
        self.watch.kill();
    }

    /// Tells the recorder that nobody reads any more: its threads go on unrecorded.
    pub(crate) fn leave(&self) {
        self.mapping.header().heartbeat.store(mallow_wire::shared::HEARTBEAT_LEFT, Ordering::SeqCst);
    }

    /// Closes the process's part of the trace.
    pub(crate) fn end(
        mut self,
        exit: Option<Exit>,
        clock: &Clock,
        file: &mut TraceFile,
    ) -> Result<Ended, CollectError> {
        let ended_us = clock.now_us().max(self.pairing.last_us());
        self.write(file)?;
        let mut wide = [None, None];
        let mut unfinished = Vec::new();
        if let Some(regions) = self.pairing.regions() {
            wide = [FROM_MAIN, FROM_FIRST].map(|name| {
                regions.end(name).map(|totals| RegionTotals { sites: pruned(totals.sites), ..totals })
            });
            unfinished = regions.names();
        }
        let Recorded {
            index, start, threads, marks, pairing, mut stacks, modules, mapping, executable, ..
        } = self;
        let mut outcome = Ok(());
        let folded = pairing.finish(ended_us, |events| {
            outcome = write_taken(index, events, file);
        });
        outcome?;
        if let Some(new) = stacks.take_new() {
            file.put(index, &new)?;
        }
        let events_lost = mapping.events_lost();
        let end = trace::ProcessEnd { ended_us, exit, events_lost };
        file.put(index, &end)?;
        let is_counted = marks.as_ref().is_some_and(|marks| marks.counts(Scope::Processes));
        let whole = if is_counted { of_folded(&folded) } else { Vec::new() };
        // A program may start thousands of processes: of an ended one nothing stays but its figures and their stacks.
        Ok(Ended {
            index,
            start,
            end,
            threads: threads.unwrap_or_default(),
            marks,
            whole,
            wide,
            unfinished,
            blind: None,
            folded,
            stacks: stacks.into_table(),
            modules,
            executable,
        })
    }

    /// What a recorder that checks itself found.
    pub(crate) fn verification(&self) -> Option<String> {
        let (header, pid) = (self.mapping.header(), self.pid);
        let value = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        (value(&header.verify_stacks) > 0).then(|| {
            format!(
                "process {pid}: of {} stacks {} differ from a walk from scratch; of {} stacks {} differ from the C runtime's unwinder",
                value(&header.verify_stacks),
                header.verify_mismatches.load(Ordering::Relaxed),
                value(&header.verify_judged),
                value(&header.verify_judge_mismatches),
            )
        })
    }

    /// The sentence for what the program wrote over, if it did.
    fn damage(&self) -> Option<String> {
        (self.damages > 0).then(|| {
            format!(
                "process {}: the program wrote over the recorder's memory ({} times seen), so its figures are not to be relied on",
                self.pid, self.damages
            )
        })
    }

    /// Why its figures are not those of the program, if they are not: a judgement must not rest on them.
    pub(crate) fn faults(&self) -> impl Iterator<Item = String> {
        unseen::loss(&self.mapping, self.pid).into_iter().chain(self.damage())
    }

    /// What of this process is not in the trace, if anything.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let pid = self.pid;
        let mut warnings = unseen::warnings(&self.mapping, pid);
        warnings.extend(self.damage());
        let cut = self.stacks.cut();
        if cut > 0 {
            warnings.push(format!(
                "process {pid}: the stack table was full, so the stacks of {cut} events lack their inner frames"
            ));
        }
        warnings
    }
}

/// From so many words on, half a million events in a second, a time stamp for each is a burden.
const BUSY_WORDS_PER_US: u64 = 1;

/// Stacks first: no event may name a stack that the reader has not seen.
fn write_events(
    index: u32,
    pairing: &mut Pairing,
    stacks: &mut StackNumbers,
    file: &mut TraceFile,
) -> Result<(), CollectError> {
    if let Some(new) = stacks.take_new() {
        file.put(index, &new)?;
    }
    match pairing.events() {
        Some(events) => write_taken(index, events, file),
        None => Ok(()),
    }
}

fn write_taken(
    index: u32,
    events: &mut trace::EventEncoder,
    file: &mut TraceFile,
) -> Result<(), CollectError> {
    if events.is_empty() {
        return Ok(());
    }
    file.put_events(index, |payload| events.take(payload))
}

fn thread_name(pid: u32, tid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}
