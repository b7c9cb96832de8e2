//! Counting a command: sums that the recorder keeps in shared memory, read when the process has ended.

use crate::budget::IMAGES_MAX;
use crate::channels;
use crate::collector::turn_away;
use crate::command_lines::CommandLines;
use crate::error::CollectError;
use crate::findings::Findings;
use crate::heap::{Executables, MemoryWatch, who};
use crate::image::Image;
use crate::latecomers::Latecomers;
use crate::limits;
use crate::mapping::Mapping;
use crate::moment::Moment;
use crate::patching::Inside;
use crate::peer::{Peer, have_ended};
use crate::poll_backoff::sample_interval;
use crate::session::{Registration, Session};
use crate::starts::Starts;
use crate::target::{Mode, Target, TracedCommand};
use crate::unseen;
use mallow_launch::{Content, Interrupts, Launch, SpawnOptions};
use mallow_profile::{Exit, Process, Totals};
use rustc_hash::FxHashMap;
use std::ffi::OsString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What to count.
#[derive(Debug)]
pub struct StatOptions {
    /// The command and its arguments.
    pub command: Vec<OsString>,
    /// How much is kept of its command line, and of those of its child processes.
    pub command_lines: CommandLines,
    /// How the command is started.
    pub spawn: SpawnOptions,
    /// The preload library.
    pub preload: Content<'static>,
}

/// One run's metrics.
#[derive(Clone, Debug)]
pub struct StatOutcome {
    /// From the start of the command to the end of its last process, in microseconds.
    pub wall_us: u64,
    /// How the command ended.
    pub exit: Option<Exit>,
    /// Its processes, with totals and without sites, threads or samples.
    pub processes: Vec<Process>,
    /// Whether any of them was counted: if not, its totals are unknown.
    pub is_counted: bool,
    /// By how many bytes the sum of the peaks may differ from the true one: 0 unless several threads of a process were busy.
    pub peak_error_bytes: u64,
    /// Warnings about the metrics.
    pub warnings: Vec<String>,
    /// Those of the warnings, first among them, that say that a process's memory does not come from `malloc`: its
    /// metrics are not those of its heap.
    pub blind: Vec<String>,
    /// Remarks that are no warnings.
    pub notes: Vec<String>,
}

/// Runs a command once and counts its allocations.
///
/// # Errors
/// When the command cannot be run or counted.
pub fn stat(options: &StatOptions) -> Result<StatOutcome, CollectError> {
    let launch = Launch::new(&options.command)?;
    let inside = Inside::prepare(options.preload, &launch, &options.command)?;
    let session = Session::open(options.command_lines)?;
    let started = Instant::now();
    let interrupts = Interrupts::watch()?;
    let command = TracedCommand::start(&launch, &session, &inside, Mode::Stat, &options.spawn, interrupts)?;
    let findings = Findings::new(session.killed_before);
    let latecomers = Latecomers::new(&session.variable());
    let mut counting = Counting {
        session,
        started,
        command,
        open: Vec::new(),
        processes: Vec::new(),
        findings,
        images: FxHashMap::default(),
        starts: Starts::default(),
        latecomers,
        executables: Executables::default(),
        peak_error_bytes: 0,
    };
    counting.run();
    let late = counting.latecomers.sentences(&counting.starts);
    counting.findings.unseen.extend(counting.starts.sentences().into_iter().chain(late));
    let is_counted = !counting.processes.is_empty();
    let nobody = (!is_counted).then_some("counted");
    counting.findings.unseen.extend(limits::sentence(nobody, counting.session.was_full()));
    counting.findings.say_what_is_unsaid();
    // A command that ended before the recorder could introduce it did nothing that we know of, but it was
    // there.
    if counting.processes.iter().all(|process| process.pid != counting.command.pid()) {
        let ended_us = started.elapsed().as_micros() as u64;
        let (pid, exit) = (counting.command.pid(), counting.command.exit());
        let command = options.command_lines.line(&options.command);
        let parent_pid = std::process::id();
        counting.processes.push(Process { pid, parent_pid, command, ended_us, exit, ..Process::default() });
    }
    Ok(StatOutcome {
        wall_us: started.elapsed().as_micros() as u64,
        exit: counting.command.exit(),
        processes: counting.processes,
        is_counted,
        peak_error_bytes: counting.peak_error_bytes,
        warnings: counting.findings.warnings(),
        blind: counting.findings.blind,
        notes: [counting.findings.killed, counting.findings.managed].concat(),
    })
}

struct Counting {
    session: Session,
    started: Instant,
    command: TracedCommand,
    open: Vec<Counted>,
    processes: Vec<Process>,
    findings: Findings,
    /// How many programs each running process has executed.
    images: FxHashMap<u32, u32>,
    starts: Starts,
    latecomers: Latecomers,
    executables: Executables,
    peak_error_bytes: u64,
}

struct Counted {
    mapping: Mapping,
    peer: Peer,
    /// Its place in the list of processes.
    index: usize,
    pid: u32,
    /// Notes of programs that it starts, as many as were taken.
    starts_seen: u32,
    memory: MemoryWatch,
    image: Image,
}

impl Counted {
    fn sample(&mut self, starts: &Starts, is_waited_for: bool) {
        self.image.look(|pid| starts.pending_of(pid), is_waited_for);
        if !self.image.is_replaced()
            && let Some(resident) = self.memory.resident()
        {
            // Sums are taken of all channels only where they matter.
            let recorded_bytes = || totals(&self.mapping).0.peak_bytes;
            // Where its blocks lie is known in the process alone.
            if !self.memory.look(resident, &self.mapping, recorded_bytes, |all| all.end - all.start) {
                self.image.replace();
            }
        }
    }

    /// Returns whether the metrics are not those of the process's heap, and the sentence about that.
    fn heap_sentence(&self, recorded_bytes: u64) -> Option<(bool, String)> {
        self.memory.settle();
        let metrics = self.memory.metrics(&self.mapping, recorded_bytes);
        let source = self.memory.source(&metrics, &self.mapping, std::iter::empty());
        Some((source.is_blind(), source.sentence(&who(self.pid, &self.mapping), &metrics)?))
    }
}

impl Counting {
    /// Nothing needs to be drained, so the loop only waits for ends. A short first pause keeps short programs
    /// short.
    fn run(&mut self) {
        let mut pause = Duration::from_micros(200);
        let mut sampled = Instant::now();
        loop {
            // Passed on to the command. Who asks twice while it runs is heard by our caller.
            let interrupted = self.command.is_interrupted();
            // Ended processes are checked first: a process that has executed another program has registered again
            // before that ends.
            let child_has_ended = self.command.has_ended();
            let have_ended = have_ended(self.open.iter().map(|it| &it.peer));
            let open = self.open.iter().zip(have_ended);
            let ended: Vec<usize> =
                open.filter(|(_, has_ended)| *has_ended).map(|(it, _)| it.index).collect();
            let has_accepted = self.accept(Session::accept_pending);
            for counted in &mut self.open {
                channels::recycle(&counted.mapping, counted.pid, |_, _| true);
                self.starts.take(&counted.mapping, counted.index as u32, &mut counted.starts_seen);
            }
            if sampled.elapsed() >= sample_interval(self.open.len()) {
                sampled = Instant::now();
                self.open.iter_mut().for_each(|it| it.sample(&self.starts, child_has_ended));
            }
            self.finalize_exited(&ended);
            if child_has_ended && interrupted {
                for mut counted in std::mem::take(&mut self.open) {
                    self.findings.add_unseen(unseen::still_ran(counted.pid, &counted.mapping));
                    self.close(&mut counted, Some(Exit::GoesOn));
                }
                return;
            }
            if child_has_ended && self.open.iter().all(|it| it.image.is_unrecorded()) {
                let open = std::mem::take(&mut self.open);
                open.into_iter().for_each(|mut counted| self.close(&mut counted, Some(Exit::GoesOn)));
            }
            let is_over = child_has_ended && self.open.is_empty() && !has_accepted;
            if is_over {
                let first = self.command.pid();
                let are_awaited = self.latecomers.are_awaited(first, &self.starts);
                if !self.accept(Session::accept_last) && !are_awaited {
                    return;
                }
            }
            // More may have registered meanwhile.
            if !has_accepted {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(2));
            }
        }
    }

    /// Takes in those who have registered. Returns true when there were some.
    fn accept(&mut self, come: fn(&mut Session) -> Vec<Registration>) -> bool {
        let registrations = come(&mut self.session);
        let any = !registrations.is_empty();
        for registration in registrations {
            if !self.replace_image(&registration) {
                turn_away(&registration);
                continue;
            }
            let mapping = match Mapping::new(&registration.memory) {
                Ok(mapping) => mapping,
                Err(error) => {
                    self.findings.add_unseen(error.to_string());
                    continue;
                }
            };
            let (pid, index) = (registration.peer.pid, self.processes.len());
            let registered = Moment::of_registration(mapping.at_start(), index as u32);
            self.starts.meet(mapping.at_start().pid, registered);
            self.processes.push(Process {
                pid,
                parent_pid: mapping.at_start().parent_pid,
                command: mapping.command(registration.command),
                started_us: self.started.elapsed().as_micros() as u64,
                ..Process::default()
            });
            let memory = MemoryWatch::new(pid, mapping.executable(), &mut self.executables);
            let image = Image::new(pid, index as u32, mapping.at_start(), mapping.file());
            let peer = registration.peer;
            self.open.push(Counted { mapping, peer, index, pid, starts_seen: 0, memory, image });
        }
        any
    }

    /// A process that registers again has become another program. False when it has done so too often.
    fn replace_image(&mut self, registration: &Registration) -> bool {
        let pid = registration.peer.pid;
        if let Some(at) = self.open.iter().position(|counted| counted.pid == pid) {
            let mut before = self.open.remove(at);
            self.close(&mut before, Some(Exit::Exec));
        }
        let images = self.images.entry(pid).or_default();
        *images += 1;
        if *images == IMAGES_MAX + 1 {
            self.findings.add_unseen(format!(
                "process {pid}: it became another program more than 4,096 times; what it did from then on is missing"
            ));
        }
        *images <= IMAGES_MAX
    }

    fn finalize_exited(&mut self, ended: &[usize]) {
        let is_ended = |counted: &Counted| ended.contains(&counted.index);
        let (ended, open): (Vec<Counted>, Vec<Counted>) =
            std::mem::take(&mut self.open).into_iter().partition(is_ended);
        self.open = open;
        for mut counted in ended {
            let own = self.command.own_exit(counted.pid);
            let exit = own.or_else(|| counted.peer.exit(counted.mapping.header()));
            self.close(&mut counted, exit);
            self.images.remove(&counted.pid);
        }
    }

    fn close(&mut self, counted: &mut Counted, exit: Option<Exit>) {
        self.starts.take(&counted.mapping, counted.index as u32, &mut counted.starts_seen);
        let events_lost = unseen::events_lost(&counted.mapping, false);
        let sentences = unseen::warnings(&counted.mapping, counted.pid);
        let sentences = sentences.into_iter().chain(unseen::loss(events_lost, counted.pid));
        sentences.for_each(|sentence| self.findings.add_unseen(sentence));
        if exit != Some(Exit::Exec) {
            counted.image.sentence().into_iter().for_each(|sentence| self.findings.add_unseen(sentence));
        }
        let (totals, peak_error_bytes) = totals(&counted.mapping);
        let libraries = self.session.unseen_libraries(counted.pid);
        let blind = match counted.heap_sentence(totals.peak_bytes) {
            Some((true, sentence)) => {
                self.findings.add_blind(sentence.clone());
                Some(sentence)
            }
            Some((false, sentence)) => {
                self.findings.add_managed(sentence);
                None
            }
            None => None,
        };
        if blind.is_none() {
            // Which blocks were freed unseen is not known here: addresses are not kept.
            let unmatched = frees_unmatched(&counted.mapping);
            let unpaired = unseen::unpaired(&counted.mapping, counted.pid, events_lost, (unmatched, 0));
            unpaired.into_iter().for_each(|sentence| self.findings.add_unseen(sentence));
        }
        self.findings.add_libraries(blind, libraries);
        self.findings.add_end(counted.pid, exit);
        let process = &mut self.processes[counted.index];
        process.exit = exit;
        process.ended_us = self.started.elapsed().as_micros() as u64;
        process.totals = totals;
        self.peak_error_bytes += peak_error_bytes;
        process.events_lost = events_lost;
    }
}

/// Adds up the frees of blocks whose allocation was not counted.
fn frees_unmatched(mapping: &Mapping) -> u64 {
    let of_channel = |index| mapping.channel(index).counters.frees_unmatched.load(Ordering::Relaxed);
    (0..mapping.channels_high()).map(of_channel).sum()
}

/// Adds up a process's channels. A channel's counters continue when its owner changes, so counts of ended threads are
/// included. Also returns by how many bytes the peak may differ from the true one: see the recorder's `stat`.
fn totals(mapping: &Mapping) -> (Totals, u64) {
    let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let live = &mapping.header().live;
    let mut totals = Totals {
        peak_bytes: value(&live.peak_bytes),
        peak_blocks: value(&live.peak_blocks),
        leaked_bytes: value(&live.bytes),
        ..Totals::default()
    };
    let mut peak_error_bytes = 0u64;
    for index in 0..mapping.channels_high() {
        let counters = &mapping.channel(index).counters;
        totals.allocations += value(&counters.allocations);
        totals.bytes += value(&counters.bytes);
        totals.frees += value(&counters.frees) + value(&counters.frees_unmatched);
        totals.reallocations += value(&counters.reallocations);
        totals.temporary += value(&counters.temporary);
        totals.failed += value(&counters.failed);
        for live in [&counters.live_bytes, &counters.unpublished_bytes] {
            totals.leaked_bytes = totals.leaked_bytes.wrapping_add(value(live));
        }
        let live_blocks = value(&counters.allocations).wrapping_sub(value(&counters.frees));
        totals.leaked_blocks = totals.leaked_blocks.wrapping_add(live_blocks);
        peak_error_bytes = peak_error_bytes.saturating_add(value(&counters.slack_bytes));
    }
    // The live bytes at the end are exact.
    if totals.leaked_bytes > totals.peak_bytes {
        (totals.peak_bytes, totals.peak_blocks) = (totals.leaked_bytes, totals.leaked_blocks);
    }
    (totals, peak_error_bytes)
}

#[cfg(test)]
#[path = "stat_tests.rs"]
mod tests;
