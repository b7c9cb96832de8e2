//! One traced process: its shared memory, and its part of the profile.

mod ending;
mod memory;
mod reading;
mod sentences;

use crate::channels::{self, ChannelReader};
use crate::clock::Clock;
use crate::error::CollectError;
use crate::heap::{Executables, MemoryWatch};
use crate::image::Image;
use crate::made_code::{CodeLists, MadeCode};
use crate::mapping::{Mapping, Memory};
use crate::marks::{Counted, FROM_MAIN, Marks, Scope};
use crate::module_map::ModuleMap;
use crate::modules::Modules;
use crate::pairing::Pairing;
use crate::peer::Peer;
use crate::process_writer::ProcessWriter;
use crate::scopes::Scopes;
use crate::session::Registration;
use crate::sink::Sink;
use crate::stack_table::StackTable;
use crate::stacks::StackNumbers;
use crate::starts::Starts;
use crate::threads::Threads;
use mallow_files::roots;
use mallow_profile::{Aggregator, RegionMetrics, Sample, ThreadIndex};
use mallow_scripts::Scripts;
use mallow_trace::{MappedModule, ProcessStart};
use mallow_wire::shared::Header;
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
    /// Whether so many words came since the time before that time stamps are a burden.
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
    image: Image,
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
        let image = Image::new(pid, index, header, mapping.file());
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
            image,
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
        starts.take(&self.mapping, self.index, &mut self.starts_seen);
    }

    /// Looks whether another program runs in it.
    pub(crate) fn look_for_another(&mut self, starts: &Starts, is_waited_for: bool) {
        self.image.look(|pid| starts.pending_of(pid), is_waited_for);
    }

    /// The program that registered.
    pub(crate) fn image(&self) -> &Image {
        &self.image
    }

    /// Its shared memory, for its doorbell.
    pub(crate) fn memory(&self) -> &Arc<Memory> {
        self.mapping.memory()
    }

    /// Says whether the pass that begins may be followed by a pause which a ring that fills has to end.
    pub(crate) fn want_doorbell(&self, is_wanted: bool) {
        self.mapping.want_doorbell(is_wanted);
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
}
