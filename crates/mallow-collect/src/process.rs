//! One traced process: its shared memory, and its part of the profile.

mod sentences;

use crate::channels::{self, ChannelReader};
use crate::clock::Clock;
use crate::drain::Pass;
use crate::error::CollectError;
use crate::exited::ExitedProcess;
use crate::heap::{Executables, HeapMetrics, HeapSource, MemoryWatch, who};
use crate::made_code::{CodeLists, MadeCode};
use crate::mapping::{Mapping, Memory};
use crate::marks::{self, Counted, FROM_FIRST, FROM_MAIN, Marks, Scope};
use crate::module_map::ModuleMap;
use crate::modules::Modules;
use crate::pairing::Pairing;
use crate::peer::Peer;
use crate::process_writer::ProcessWriter;
use crate::region_sites::{of_folded, pruned};
use crate::scopes::Scopes;
use crate::session::Registration;
use crate::sink::Sink;
use crate::stack_table::StackTable;
use crate::stacks::StackNumbers;
use crate::starts::Starts;
use crate::threads::Threads;
use mallow_files::roots;
use mallow_profile::{Aggregator, Exit, RegionMetrics, RegionTotals, Sample, ThreadIndex};
use mallow_scripts::Scripts;
use mallow_trace::{EVENTS_PER_CHUNK, MappedModule, ProcessEnd, ProcessStart};
use mallow_wire::shared::{Header, PYTHON_OBJECTS_COUNTED};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A process whose events are read.
#[derive(Debug)]
pub(crate) struct TracedProcess {
    /// Its index in the trace.
    pub(crate) index: u32,
    /// Its process id as we see it.
    pub(crate) pid: u32,
    mapping: Mapping,
    peer: Peer,
    pairing: Pairing,
    /// `None` if the program's marks are not requested.
    marks: Option<Marks>,
    /// What threads counted of themselves in this pass, until they are answered.
    counted: Vec<(ThreadIndex, Option<RegionMetrics>)>,
    start: ProcessStart,
    stacks: StackNumbers,
    modules: Modules,
    readers: Vec<ChannelReader>,
    own: bool,
    /// Whether its results are kept after its end.
    keeps_ended: bool,
    /// How often a ring contained invalid data.
    damages: u64,
    /// Why no more of it is read, if that is so.
    beyond: Option<String>,
    /// When the rings were read last.
    drained_us: u64,
    /// Whether [`BUSY_WORDS_PER_US`] came since the time before.
    is_busy: bool,
    /// Whether the last pass left a part of it to the next one.
    is_cut: bool,
    threads: Threads,
    samples: Vec<Sample>,
    writer: ProcessWriter,
    executable: Option<PathBuf>,
    memory: MemoryWatch,
    code_lists: CodeLists,
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
    /// What is kept of it after its end. A server may start and end processes for days.
    pub(crate) exited: bool,
    /// It is this very process, which records itself for a while. Its memory is ours as well, so nothing is reported
    /// of it, and its threads are not left in recording state: the next recording finds them.
    pub(crate) own: bool,
}

impl TracedProcess {
    /// Takes a process in, and writes its first chunk.
    pub(crate) fn begin(
        registration: Registration,
        index: u32,
        wanted: Wanted,
        executables: &mut Executables,
        clock: &Clock,
        sink: &mut dyn Sink,
    ) -> Result<TracedProcess, CollectError> {
        let mapping = Mapping::new(&registration.memory)?;
        let header = mapping.at_start();
        let parent_pid = header.parent_pid;
        let pid = registration.peer.pid;
        if !wanted.own {
            let _ = roots::hold(pid, || registration.peer.has_ended());
        }
        let command = mapping.command(registration.command);
        let start = ProcessStart { pid, parent_pid, command, started_us: clock.now_us() };
        let writer = ProcessWriter::begin(index, &start, sink)?;
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
        let marks = wanted.regions.map(|counted| Marks::new(pid, counted));
        if let (Some(marks), Some(regions)) = (&marks, pairing.regions()) {
            marks.want_stacks(&mapping, regions);
        }
        let memory = match wanted.own {
            true => MemoryWatch::nothing(pid),
            false => MemoryWatch::new(pid, mapping.executable(), executables),
        };
        let code_lists = CodeLists::of(pid, header.pid);
        let readers = if wanted.own { channels::read_up(&mapping) } else { Vec::new() };
        Ok(TracedProcess {
            index,
            pid,
            mapping,
            peer: registration.peer,
            pairing,
            marks,
            counted: Vec::new(),
            start,
            stacks: StackNumbers::default(),
            modules: Modules::default(),
            readers,
            own: wanted.own,
            keeps_ended: wanted.exited,
            damages: 0,
            beyond: None,
            drained_us: 0,
            is_busy: false,
            is_cut: false,
            threads: Threads::new(pid, wanted.threads),
            samples: Vec::new(),
            writer,
            // Who marks a region waits for us at its begin, so it is there still.
            executable: wanted.regions.and_then(|_| std::fs::read_link(format!("/proc/{pid}/exe")).ok()),
            memory,
            code_lists,
            starts_seen: 0,
        })
    }

    /// Returns the header of its shared memory.
    pub(crate) fn header(&self) -> &Header {
        self.mapping.header()
    }

    /// Returns the header as it was when the process registered.
    pub(crate) fn at_start(&self) -> &Header {
        self.mapping.at_start()
    }

    /// Returns its sums up to now.
    pub(crate) fn fold(&self) -> &Aggregator {
        self.pairing.fold()
    }

    /// Its command line, blanks between arguments.
    pub(crate) fn command(&self) -> &str {
        &self.start.command
    }

    /// Returns the executable and libraries that were on its stacks.
    pub(crate) fn modules(&self) -> &[MappedModule] {
        self.modules.list()
    }

    /// Every node of its stacks.
    pub(crate) fn stacks(&self) -> &StackTable {
        self.stacks.table()
    }

    /// Returns the script frames on them.
    pub(crate) fn scripts(&self) -> &Scripts {
        self.stacks.scripts()
    }

    /// Returns the symbol files of JIT-compiled code on its stacks.
    pub(crate) fn made_code(&self) -> MadeCode {
        let modules = ModuleMap::of(self.modules());
        self.code_lists.made(self.stacks().addresses_from(0), &modules, self.stacks.code())
    }

    /// Returns whether code that it made is on its stacks.
    fn has_made_code(&self) -> bool {
        let modules = ModuleMap::of(self.modules());
        self.stacks().addresses_from(0).any(|key| modules.at(&key).is_none())
    }

    /// Returns who it is.
    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Returns what is ready when they have.
    pub(crate) fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.peer.pidfd.as_ref().map(OwnedFd::as_fd)
    }

    /// The time of its last event.
    pub(crate) fn last_us(&self) -> u64 {
        self.pairing.last_us()
    }

    /// Counts what a thread does from now on in a scope.
    pub(crate) fn enter_scope(&mut self, scope: u64, tid: u32) {
        self.meet_threads();
        if let Some(thread) = self.thread_of(tid) {
            self.pairing.scopes().enter(scope, thread);
        }
    }

    /// A thread's doings are no longer counted in a scope.
    pub(crate) fn leave_scope(&mut self, scope: u64, tid: u32) {
        if let Some(thread) = self.thread_of(tid) {
            self.pairing.scopes().leave(scope, thread);
        }
    }

    /// The scopes in which threads are counted.
    pub(crate) fn scopes(&mut self) -> &mut Scopes {
        self.pairing.scopes()
    }

    /// The thread that has a channel under this id.
    fn thread_of(&self, tid: u32) -> Option<ThreadIndex> {
        let owner = |index: usize| self.mapping.channel(index).tid.load(Ordering::Acquire);
        let taken = self.readers.iter().enumerate().filter(|(index, _)| owner(*index) == tid);
        taken.max_by_key(|(_, reader)| reader.taken_serial).map(|(_, reader)| reader.thread)
    }

    /// Takes the notes of programs that it starts.
    pub(crate) fn take_starts(&mut self, starts: &mut Starts) {
        starts.take(&self.mapping, &mut self.starts_seen);
    }

    /// Its shared memory, for its doorbell.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        self.mapping.memory()
    }

    /// Says whether the pass that begins may be followed by a pause which a ring that fills has to end.
    pub(crate) fn want_doorbell(&self, is_wanted: bool) {
        self.mapping.want_doorbell(is_wanted);
    }

    /// Drains the rings up to a time stamp; returns the number of words read.
    pub(crate) fn drain(
        &mut self,
        clock: &Clock,
        until_tsc: u64,
        sink: &mut dyn Sink,
    ) -> Result<u64, CollectError> {
        self.mapping.beat(self.is_busy);
        self.meet_threads();
        self.read_modules();
        let (mut outcome, writer) = (Ok(()), &self.writer);
        let mut flush = |pairing: &mut Pairing, stacks: &mut StackNumbers| {
            if outcome.is_ok() && pairing.events().is_some_and(|events| events.len() >= EVENTS_PER_CHUNK) {
                outcome = writer.events(pairing, stacks, sink);
            }
        };
        let mut pass = Pass {
            mapping: &self.mapping,
            clock,
            until_tsc,
            pairing: &mut self.pairing,
            stacks: &mut self.stacks,
            marks: self.marks.as_mut(),
            counted: &mut self.counted,
            flush: &mut flush,
        };
        let passed = pass.run(&mut self.readers);
        self.damages += passed.damages;
        self.is_cut = passed.is_cut;
        let now_us = clock.now_us();
        self.is_busy = passed.words >= now_us.saturating_sub(self.drained_us) * BUSY_WORDS_PER_US;
        self.drained_us = now_us;
        marks::answer_counts(&self.mapping, &self.readers, &mut self.counted);
        if let (Some(marks), Some(regions)) = (&mut self.marks, self.pairing.regions()) {
            marks.answer(&self.mapping, &self.readers, regions);
        }
        outcome.map(|()| passed.words)
    }

    /// Reads what is left when it has ended.
    pub(crate) fn drain_to_the_end(
        &mut self,
        clock: &Clock,
        sink: &mut dyn Sink,
    ) -> Result<(), CollectError> {
        for _ in 0..CUT_PASSES_MAX {
            self.drain(clock, u64::MAX, sink)?;
            if !self.is_cut || self.beyond().is_some() {
                return Ok(());
            }
        }
        self.abandon("its last stacks are deeper than can be read in a second");
        Ok(())
    }

    /// Why no more of it is to be read, if that is so.
    pub(crate) fn beyond(&self) -> Option<&str> {
        if self.modules.are_too_many() {
            return Some("its log of modules names more than a recorder can");
        }
        let of_marks = || self.marks.as_ref().and_then(Marks::beyond);
        self.beyond.as_deref().or_else(|| self.stacks.beyond()).or_else(of_marks)
    }

    /// No more of it is to be read.
    pub(crate) fn abandon(&mut self, why: &str) {
        self.beyond.get_or_insert_with(|| why.to_owned());
    }

    /// Returns about how many bytes of our memory it needs.
    pub(crate) fn held_bytes(&self) -> u64 {
        if self.own { 0 } else { self.pairing.held_bytes() + self.kept_bytes() }
    }

    /// About how many of them stay when it has ended.
    pub(crate) fn kept_bytes(&self) -> u64 {
        if !self.keeps_ended {
            return 0;
        }
        let marks = self.marks.as_ref().map_or(0, Marks::held_bytes);
        let of_code = self.stacks.held_bytes() + self.modules.held_bytes();
        self.fold().kept_bytes() + of_code + self.threads.held_bytes() + marks + PROCESS_BYTES
    }

    /// Returns its own peak of memory.
    pub(crate) fn largest_bytes(&self) -> u64 {
        self.memory.largest_bytes()
    }

    /// Returns about how many words of its rings were not read yet.
    pub(crate) fn pending_words(&self) -> u64 {
        let of = |(index, reader): (usize, &ChannelReader)| {
            self.mapping.channel(index).head.load(Ordering::Relaxed).saturating_sub(reader.tail)
        };
        self.readers.iter().enumerate().map(of).fold(0, u64::saturating_add)
    }

    /// Finds out who owns the channels in use.
    fn meet_threads(&mut self) {
        self.threads.begin_pass();
        for index in 0..self.mapping.channels_high() {
            let channel = self.mapping.channel(index);
            // The id is written after the serial number.
            let tid = channel.tid.load(Ordering::Acquire);
            let taken_serial = channel.taken_serial.load(Ordering::Relaxed);
            if self.readers.len() <= index {
                self.readers.push(ChannelReader { thread: ThreadIndex(0), taken_serial: 0, tail: 0, tsc: 0 });
            }
            if tid == channels::NOBODY || self.readers[index].taken_serial == taken_serial {
                continue;
            }
            self.readers[index].taken_serial = taken_serial;
            self.readers[index].thread = self.threads.meet(index, tid);
        }
    }

    /// Releases the channels of threads that have ended and are read to the end. A reply that is still to come must
    /// not reach the channel's next owner.
    pub(crate) fn recycle_channels(&self) {
        channels::recycle(&self.mapping, self.pid, |index, serial| {
            self.readers.get(index).is_some_and(|reader| {
                reader.taken_serial == serial
                    && !self.marks.as_ref().is_some_and(|marks| marks.awaits(reader.thread))
                    && self.mapping.channel(index).head.load(Ordering::Acquire) == reader.tail
            })
        });
    }

    /// Returns whether some thread waits for a channel.
    pub(crate) fn wants_channels(&self) -> bool {
        self.mapping.header().channels_wanted.load(Ordering::Relaxed) > 0
    }

    fn read_modules(&mut self) {
        if self.header().runtime_asked.load(Ordering::Relaxed) != 0 {
            self.stacks.follow_code(&self.code_lists);
        }
        self.stacks.read_scripts(&self.mapping);
        self.modules.read(&self.mapping);
    }

    /// Reads the log records after unfinished ones that no thread can finish any more.
    fn read_modules_to_the_end(&mut self) {
        self.stacks.read_scripts(&self.mapping);
        self.modules.read_to_the_end(&self.mapping);
    }

    /// Lets the process record from now on, if it waits for that. What it has until then is no growth of its heap.
    pub(crate) fn let_begin(&mut self) {
        if self.mapping.header().is_early.load(Ordering::Relaxed) == 0 {
            return;
        }
        let resident = self.memory.resident();
        let header = self.mapping.header();
        if let Some(resident) = resident {
            header.anonymous_bytes_at_start.store(resident.anonymous_bytes, Ordering::Relaxed);
        }
        header.is_early.store(0, Ordering::Relaxed);
    }

    /// Samples resident memory, and the names of threads.
    pub(crate) fn sample(&mut self, clock: &Clock) {
        if let Some(resident) = self.memory.resident() {
            self.samples.push(Sample { time_us: clock.now_us(), rss_bytes: resident.bytes });
            let recorded_bytes = || self.pairing.fold().totals().peak_bytes;
            let met_bytes = |range: &_| self.pairing.met_bytes_in(range);
            self.memory.look(resident, &self.mapping, recorded_bytes, met_bytes);
        }
    }

    /// Returns how much memory it has that could be a heap, and how much of it was recorded.
    pub(crate) fn heap_metrics(&self) -> HeapMetrics {
        self.memory.metrics(&self.mapping, self.fold().totals().peak_bytes)
    }

    /// Returns where its memory comes from, as far as it is known.
    pub(crate) fn heap_source(&self) -> HeapSource {
        let modules = self.modules().iter().map(|module| module.path.as_str());
        self.memory.source(&self.heap_metrics(), &self.mapping, modules)
    }

    /// Returns what has to be reported of that at its end: whether the metrics are not those of its heap, and the
    /// sentence.
    pub(crate) fn heap_sentence(&self) -> Option<(bool, String)> {
        if self.own {
            return None;
        }
        self.memory.settle();
        let source = self.heap_source();
        let sentence = source.sentence(&who(self.pid, &self.mapping), &self.heap_metrics())?;
        Some((source.is_blind(), sentence))
    }

    /// Writes everything that is not written yet.
    pub(crate) fn write(&mut self, sink: &mut dyn Sink) -> Result<(), CollectError> {
        self.writer.events(&mut self.pairing, &mut self.stacks, sink)?;
        self.writer.modules(self.modules.list(), sink)?;
        self.writer.threads(self.threads.named(), sink)?;
        self.writer.samples(&mut self.samples, sink)
    }

    /// Returns its exit status, if a process other than its parent can know it.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.peer.exit(self.mapping.header())
    }

    /// Ends it at once; false when it is none of ours.
    pub(crate) fn kill(&self) -> bool {
        self.peer.kill()
    }

    /// Lets go of it when it has ended and became our child.
    pub(crate) fn reap(&self) {
        self.peer.reap();
    }

    /// Tells the recorder that the collector ends: its threads go on unrecorded.
    pub(crate) fn leave(&self) {
        if self.own {
            return;
        }
        self.mapping.header().heartbeat.store(mallow_wire::shared::HEARTBEAT_LEFT, Ordering::SeqCst);
    }

    /// Closes its part of the trace. Returns what is kept of it, and what is not needed any more: the memory that was shared with it, and tables of tens
    /// of MB.
    pub(crate) fn end(
        mut self,
        exit: Option<Exit>,
        clock: &Clock,
        sink: &mut dyn Sink,
    ) -> Result<(ExitedProcess, Box<dyn Send>), CollectError> {
        let ended_us = clock.now_us().max(self.pairing.last_us());
        let events_lost = self.events_lost();
        self.read_modules_to_the_end();
        self.write(sink)?;
        let mut wide = [None, None];
        let mut unfinished = Vec::new();
        if let Some(regions) = self.pairing.regions() {
            wide = [FROM_MAIN, FROM_FIRST].map(|name| {
                regions.end(name).map(|totals| RegionTotals { sites: pruned(totals.sites), ..totals })
            });
            unfinished = regions.names();
        }
        let made = self.made_code();
        // Another program in the same process may be writing its own.
        if self.header().runtime_asked.load(Ordering::Relaxed) != 0 && exit != Some(Exit::Exec) {
            self.code_lists.remove_map();
        }
        let TracedProcess {
            index,
            start,
            threads,
            marks,
            pairing,
            mut stacks,
            modules,
            mapping,
            executable,
            writer,
            ..
        } = self;
        let mut outcome = Ok(());
        let (folded, unpaired) = pairing.finish(ended_us, |events| outcome = writer.taken(events, sink));
        outcome?;
        let end = ProcessEnd { ended_us, exit, events_lost };
        writer.end(&mut stacks, &end, sink)?;
        let is_counted = marks.as_ref().is_some_and(|marks| marks.counts(Scope::Processes));
        let whole = if is_counted { of_folded(&folded) } else { Vec::new() };
        let (stacks, scripts, unnumbered) = stacks.into_table();
        // A program may start thousands of processes: of an ended one only its sums and their stacks are kept.
        let exited = ExitedProcess {
            index,
            start,
            end,
            threads: threads.into_named(),
            marks,
            whole,
            wide,
            unfinished,
            python_objects: mapping.header().python_objects.load(Ordering::Relaxed) == PYTHON_OBJECTS_COUNTED,
            blind: None,
            folded,
            stacks,
            scripts,
            made,
            modules: modules.into_list(),
            executable,
        };
        Ok((exited, Box::new((mapping, unpaired, unnumbered))))
    }
}

/// The size of a process beside what is counted.
const PROCESS_BYTES: u64 = 4 << 10;
/// Passes in which the last stacks of a process are read.
const CUT_PASSES_MAX: usize = 3;
/// From so many words on, half a million events in a second, a time stamp for each is a burden.
const BUSY_WORDS_PER_US: u64 = 1;
