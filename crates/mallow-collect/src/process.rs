//! One traced process: its shared memory, and its part of the profile.

use crate::channels::{self, ChannelReader};
use crate::clock::Clock;
use crate::drain::Pass;
use crate::error::CollectError;
use crate::exited::ExitedProcess;
use crate::heap::{Executables, HeapMetrics, HeapSource, MemoryWatch};
use crate::made_code::{CodeLists, MadeCode};
use crate::mapping::Mapping;
use crate::marks::{Counted, FROM_FIRST, FROM_MAIN, Marks, Scope};
use crate::module_map::ModuleMap;
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
use crate::unseen;
use mallow_profile::{Aggregator, EventsLost, Exit, RegionTotals, Sample, ThreadIndex};
use mallow_scripts::Scripts;
use mallow_trace::{EVENTS_PER_CHUNK, MappedModule, ProcessEnd, ProcessStart, ThreadName};
use mallow_wire::shared::{FEATURE_PYTHON_OBJECTS, Header, PYTHON_OBJECTS_COUNTED, PYTHON_OBJECTS_ELSEWHERE};
use rustc_hash::FxHashSet;
use std::path::PathBuf;
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
    /// None when nobody asked for the program's marks.
    marks: Option<Marks>,
    start: ProcessStart,
    stacks: StackNumbers,
    modules: Vec<MappedModule>,
    /// Generation, start and end of each.
    modules_met: FxHashSet<(u64, u64, u64)>,
    modules_offset: usize,
    readers: Vec<ChannelReader>,
    own: bool,
    /// How often a ring held what no recorder writes.
    damages: u64,
    /// When the rings were read last.
    drained_us: u64,
    /// Whether [`BUSY_WORDS_PER_US`] came since the time before.
    is_busy: bool,
    /// None when threads that use a channel one after the other count as one.
    threads: Option<Vec<ThreadName>>,
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
    /// What remains of it when it has ended. A server may start and end processes for days.
    pub(crate) exited: bool,
    /// It is this very process, which records itself for a while. Its memory is ours as well, so nothing is said of it, and its threads are not
    /// left behind: what is recorded next finds them.
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
        let start =
            ProcessStart { pid, parent_pid, command: registration.command, started_us: clock.now_us() };
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
            marks: wanted.regions.map(|counted| Marks::new(pid, counted)),
            start,
            stacks: StackNumbers::default(),
            modules: Vec::new(),
            modules_met: FxHashSet::default(),
            modules_offset: 0,
            readers,
            own: wanted.own,
            damages: 0,
            drained_us: 0,
            is_busy: false,
            threads: wanted.threads.then(Vec::new),
            samples: Vec::new(),
            writer,
            // Who marks a region waits for us at its begin, so it is there still.
            executable: wanted.regions.and_then(|_| std::fs::read_link(format!("/proc/{pid}/exe")).ok()),
            memory,
            code_lists,
            starts_seen: 0,
        })
    }

    /// What it shares with us.
    pub(crate) fn header(&self) -> &Header {
        self.mapping.header()
    }

    /// What it said of itself when it introduced itself.
    pub(crate) fn at_start(&self) -> &Header {
        self.mapping.at_start()
    }

    /// Its figures up to now.
    pub(crate) fn fold(&self) -> &Aggregator {
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

    /// What the frames of scripts on them are.
    pub(crate) fn scripts(&self) -> &Scripts {
        self.stacks.scripts()
    }

    /// What the code on its stacks is that it made.
    pub(crate) fn made_code(&self) -> MadeCode {
        self.code_lists.made(self.stacks().addresses_from(0), &ModuleMap::of(&self.modules))
    }

    /// Whether code that it made is on its stacks.
    fn has_made_code(&self) -> bool {
        let modules = ModuleMap::of(&self.modules);
        self.stacks().addresses_from(0).any(|key| modules.at(&key).is_none())
    }

    /// Whether all of its threads have ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.peer.has_ended()
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

    /// Reads the rings up to a time stamp; gives the number of words read.
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

    /// How much its rings hold that was not read yet, about.
    pub(crate) fn pending_words(&self) -> u64 {
        let of = |(index, reader): (usize, &ChannelReader)| {
            self.mapping.channel(index).head.load(Ordering::Relaxed).saturating_sub(reader.tail)
        };
        self.readers.iter().enumerate().map(of).fold(0, u64::saturating_add)
    }

    /// Finds out who owns the channels in use.
    fn meet_threads(&mut self) {
        for index in 0..self.mapping.channels_high() {
            let channel = self.mapping.channel(index);
            // The id is written behind the serial number.
            let tid = channel.tid.load(Ordering::Acquire);
            let taken_serial = channel.taken_serial.load(Ordering::Relaxed);
            if self.readers.len() <= index {
                self.readers.push(ChannelReader { thread: ThreadIndex(0), taken_serial: 0, tail: 0, tsc: 0 });
            }
            if tid == channels::NOBODY || self.readers[index].taken_serial == taken_serial {
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

    /// Gives back the channels of threads that have ended and are read to the end. An answer that is still to come must not
    /// reach the channel's next owner.
    pub(crate) fn recycle_channels(&self) {
        channels::recycle(&self.mapping, self.pid, |index, serial| {
            self.readers.get(index).is_some_and(|reader| {
                reader.taken_serial == serial
                    && !self.marks.as_ref().is_some_and(|marks| marks.awaits(reader.thread))
                    && self.mapping.channel(index).head.load(Ordering::Acquire) == reader.tail
            })
        });
    }

    /// Whether some thread waits for a channel.
    pub(crate) fn wants_channels(&self) -> bool {
        self.mapping.header().channels_wanted.load(Ordering::Relaxed) > 0
    }

    fn read_modules(&mut self) {
        self.stacks.read_scripts(&self.mapping);
        while let Some((module, next)) = self.mapping.module(self.modules_offset) {
            // Two threads that meet one at the same time both say so.
            if self.modules_met.insert((module.generation, module.start_avma, module.end_avma)) {
                self.modules.push(module);
            }
            self.modules_offset = next;
        }
    }

    /// What stands in the logs behind records that nobody will fill any more.
    fn read_modules_to_the_end(&mut self) {
        self.stacks.read_scripts_to_the_end(&self.mapping);
        self.read_modules();
        while let Some(behind) = self.mapping.behind_unfilled_module(self.modules_offset) {
            self.modules_offset = behind;
            self.read_modules();
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
    pub(crate) fn heap_metrics(&self) -> HeapMetrics {
        self.memory.metrics(&self.mapping, self.fold().totals().peak_bytes)
    }

    /// Where its memory comes from, by what is known up to now.
    pub(crate) fn heap_source(&self) -> HeapSource {
        let modules = self.modules.iter().map(|module| module.path.as_str());
        self.memory.source(&self.heap_metrics(), &self.mapping, modules)
    }

    /// What is to be said of that at its end: whether the figures are not those of its heap, and the sentence.
    pub(crate) fn heap_sentence(&self) -> Option<(bool, String)> {
        if self.own {
            return None;
        }
        self.memory.settle();
        let source = self.heap_source();
        let sentence = source.sentence(self.pid, &self.heap_metrics())?;
        Some((source.is_blind(), sentence))
    }

    /// Writes everything that is not written yet.
    pub(crate) fn write(&mut self, sink: &mut dyn Sink) -> Result<(), CollectError> {
        self.writer.events(&mut self.pairing, &mut self.stacks, sink)?;
        self.writer.modules(&self.modules, sink)?;
        self.writer.threads(self.threads.as_deref().unwrap_or_default(), sink)?;
        self.writer.samples(&mut self.samples, sink)
    }

    /// How it ended, when somebody other than its parent may know.
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

    /// Tells the recorder that nobody reads any more: its threads go on unrecorded.
    pub(crate) fn leave(&self) {
        if self.own {
            return;
        }
        self.mapping.header().heartbeat.store(mallow_wire::shared::HEARTBEAT_LEFT, Ordering::SeqCst);
    }

    /// Closes its part of the trace.
    pub(crate) fn end(
        mut self,
        exit: Option<Exit>,
        clock: &Clock,
        sink: &mut dyn Sink,
    ) -> Result<ExitedProcess, CollectError> {
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
        let folded = pairing.finish(ended_us, |events| outcome = writer.taken(events, sink));
        outcome?;
        let end = ProcessEnd { ended_us, exit, events_lost };
        writer.end(&mut stacks, &end, sink)?;
        let is_counted = marks.as_ref().is_some_and(|marks| marks.counts(Scope::Processes));
        let whole = if is_counted { of_folded(&folded) } else { Vec::new() };
        let (stacks, scripts) = stacks.into_table();
        // A program may start thousands of processes: of an ended one nothing stays but its figures and their stacks.
        Ok(ExitedProcess {
            index,
            start,
            end,
            threads: threads.unwrap_or_default(),
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
            modules,
            executable,
        })
    }

    /// Whether what Python's allocator hands out was wanted, and whether there was one to be asked.
    pub(crate) fn python_objects(&self) -> (bool, bool) {
        let is_wanted = self.at_start().features & FEATURE_PYTHON_OBJECTS != 0;
        (is_wanted, self.header().python_objects.load(Ordering::Relaxed) != 0)
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
            ) + &self.verified_scripts()
        })
    }

    /// The same for the stacks of scripts; nothing where there are none.
    fn verified_scripts(&self) -> String {
        let (scripts, pairs) = (&self.mapping.header().scripts, self.stacks.pairs());
        match scripts.verify_stacks.load(Ordering::Relaxed) {
            0 => String::new(),
            stacks => format!(
                "\nprocess {}: of {stacks} stacks of scripts {} differ from scratch; of {} pairs {} have more calls of the interpreter, {} fewer",
                self.pid,
                scripts.verify_mismatches.load(Ordering::Relaxed),
                pairs.count,
                pairs.other_list,
                pairs.uncalled,
            ),
        }
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

    /// The sentence for stacks that are not whole, if there are any.
    fn cut_stacks(&self) -> Option<String> {
        let (pid, cut) = (self.pid, self.stacks.cut());
        (cut > 0).then(|| {
            format!("process {pid}: the stack table was full, so the stacks of {cut} events lack their inner frames")
        })
    }

    /// Its events that were not recorded.
    fn events_lost(&self) -> EventsLost {
        unseen::events_lost(&self.mapping, self.damages > 0)
    }

    /// Why its figures are not those of the program, if they are not: a judgement must not rest on them.
    pub(crate) fn faults(&self) -> impl Iterator<Item = String> {
        [unseen::loss(self.events_lost(), self.pid), self.damage(), self.cut_stacks()].into_iter().flatten()
    }

    /// What of this process is not in the trace, if anything.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let pid = self.pid;
        let mut warnings = unseen::warnings(&self.mapping, pid);
        warnings.extend(self.faults());
        warnings.extend(self.stacks.scripts().sentences(pid, &self.mapping));
        let is_asked = self.header().runtime_asked.load(Ordering::Relaxed) != 0;
        if is_asked && !self.code_lists.has_map() && self.has_made_code() {
            warnings.push(format!(
                "process {pid}: it was asked to write down what code it makes, and has not: its methods have no names (a JVM that is killed writes nothing)"
            ));
        }
        if self.header().python_objects.load(Ordering::Relaxed) == PYTHON_OBJECTS_ELSEWHERE {
            warnings.push(format!(
                "process {pid}: PYTHONMALLOC chooses its allocator, so what Python hands out itself is recorded only as far as that takes it from malloc"
            ));
        }
        warnings
    }
}

/// From so many words on, half a million events in a second, a time stamp for each is a burden.
const BUSY_WORDS_PER_US: u64 = 1;

fn thread_name(pid: u32, tid: u32) -> String {
    let name = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
    name.trim_end().to_owned()
}
