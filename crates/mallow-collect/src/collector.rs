//! Collects what processes record: takes them in, reads their rings, and closes them when they have ended.
//!
//! A collector has no child and no file. Whose processes they are, and when it is over, is its [`Target`]'s to say; what is read goes
//! into its [`Sink`]; an [`Observer`] looks on between the passes. It must never stop a program, nor trust what stands in shared memory.

use crate::budget::Budget;
use crate::clock::Clock;
use crate::doorbell::Doorbells;
use crate::error::CollectError;
use crate::exited::ExitedProcess;
use crate::findings::Findings;
use crate::heap::Executables;
use crate::latecomers::Latecomers;
use crate::mapping::Mapping;
use crate::moment::Moment;
use crate::out_of_memory::KilledBefore;
use crate::peer::have_ended;
use crate::poll_backoff::{PollBackoff, sample_interval, sleep_until_ready};
use crate::process::{TracedProcess, Wanted};
use crate::session::{Registration, Session};
use crate::sink::Sink;
use crate::starts::Starts;
use crate::target::Target;
use crate::workers::{SharedSink, Workers};
use mallow_profile::Exit;
use mallow_wire::shared::HEARTBEAT_LEFT;
use rustix::event::{PollFd, PollFlags};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Looks on while processes are collected.
pub(crate) trait Observer {
    /// Between two passes there is a pause of this length at most. Returns whether one of the descriptors ended it.
    fn pause(&mut self, longest: Duration, watched: &mut [PollFd<'_>]) -> bool {
        sleep_until_ready(longest, watched)
    }
    /// Behind what the next pass reads, everything has happened that led to now.
    fn before_pass(&mut self) {}
    /// Returns whether the observer has finished, so that collecting ends after the next pass, which reads
    /// everything.
    fn is_over(&self) -> bool {
        false
    }
    /// Every ring was read.
    fn after_pass(&mut self, _processes: &mut [TracedProcess]) {}
    /// Called every few milliseconds, and before a process is closed.
    fn sampled(&mut self, _process: &TracedProcess) {}
}

/// An observer that does nothing.
impl Observer for () {}

/// The processes of a recording, and the results of those that have ended.
pub(crate) struct Collector<S> {
    /// `None` if no process can register: the collector was given its process.
    session: Option<Session>,
    clock: Clock,
    pub(crate) sink: S,
    pub(crate) wanted: Wanted,
    processes: Vec<TracedProcess>,
    pub(crate) exited: Vec<ExitedProcess>,
    /// What the last of them left, while no other is recorded: it is dropped when nobody waits for that.
    pub(crate) remains: Option<Box<dyn Send>>,
    /// How many processes have registered.
    pub(crate) registered: u32,
    starts: Starts,
    /// None if nobody can register.
    latecomers: Option<Latecomers>,
    executables: Executables,
    workers: Workers,
    /// None where no recorder can ring.
    doorbells: Option<Doorbells>,
    budget: Budget,
    pub(crate) findings: Findings,
}

/// A process with so many words to read, a tenth of a millisecond of work and more, is worth a thread.
const MUCH_WORDS: u64 = 16 * 1024;
/// How often it is judged what processes make us hold.
const JUDGE_INTERVAL: Duration = Duration::from_millis(10);
/// How often all collected events are written to the sink, whether or not a chunk is full.
const WRITE_INTERVAL: Duration = Duration::from_millis(500);
/// How often the collector checks for ended processes at least.
const ENDS_INTERVAL: Duration = Duration::from_millis(5);

/// Who ended a pause.
#[derive(Clone, Copy, Debug, Default)]
struct Woken {
    by_others: bool,
    by_a_ring: bool,
}

/// How many processes can end a pause. Others are seen after it.
const WATCHED_MAX: usize = 32;

/// Tells a process that it is not recorded.
pub(crate) fn turn_away(registration: &Registration) {
    if let Ok(mapping) = Mapping::new(&registration.memory) {
        mapping.header().heartbeat.store(HEARTBEAT_LEFT, Ordering::SeqCst);
    }
}

impl<S: Sink + Send> Collector<S> {
    /// Returns a collector with which no process has registered.
    pub(crate) fn new(session: Option<Session>, clock: Clock, sink: S, wanted: Wanted) -> Collector<S> {
        let latecomers = session.as_ref().map(|session| Latecomers::new(&session.variable()));
        let killed_before = session.as_ref().map_or_else(KilledBefore::now, |session| session.killed_before);
        Collector {
            session,
            clock,
            sink,
            wanted,
            processes: Vec::new(),
            exited: Vec::new(),
            remains: None,
            registered: 0,
            starts: Starts::default(),
            latecomers,
            executables: Executables::default(),
            workers: Workers::of_this_machine(),
            doorbells: None,
            budget: Budget::default(),
            findings: Findings::new(killed_before),
        }
    }

    /// Microseconds since the recording's beginning.
    pub(crate) fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    /// How long after the start that is.
    pub(crate) fn delay(&self) -> Duration {
        self.clock.delay()
    }

    /// Collects until everybody has ended; returns true when the user did not want to wait for that.
    pub(crate) fn run(
        &mut self,
        target: &mut dyn Target,
        observer: &mut dyn Observer,
    ) -> Result<bool, CollectError> {
        let [mut sampled, mut judged, mut written, mut ends_looked_at] = [Instant::now(); 4];
        let mut backoff = PollBackoff::default();
        let (mut has_accepted, mut ended_by) = (false, Woken::default());
        loop {
            let woken = std::mem::take(&mut ended_by);
            let interrupted = target.is_interrupted();
            if target.is_overdue() {
                self.end_all(observer)?;
            }
            // Ended processes are checked first: what a process did before it ended is then seen by the pass below.
            // Where processes start, others end, and hold memory of ours.
            let mut ended = Vec::new();
            if has_accepted
                || woken.by_others
                || backoff.is_idle()
                || ends_looked_at.elapsed() > ENDS_INTERVAL
            {
                ends_looked_at = Instant::now();
                target.has_ended();
                let have_ended = have_ended(self.processes.iter().map(TracedProcess::peer));
                let processes = self.processes.iter().zip(have_ended);
                ended.extend(processes.filter(|(_, has_ended)| *has_ended).map(|(it, _)| it.index));
            }
            has_accepted = self.accept(Session::accept_pending, target, observer)?;
            if self.clock.has_begun() {
                self.processes.iter_mut().for_each(TracedProcess::let_begin);
            }
            observer.before_pass();
            let interrupted = interrupted || observer.is_over();
            let is_wanted = backoff.may_sleep() && self.doorbells.is_some();
            self.processes.iter().for_each(|process| process.want_doorbell(is_wanted));
            let words = self.drain(|process| interrupted || ended.contains(&process.index))?;
            self.finalize_exited(&ended, target, observer)?;
            self.leave_damaged(observer)?;
            observer.after_pass(&mut self.processes);
            // Who observes a server waits for whatever runs there.
            if self.wanted.exited && target.has_ended() {
                self.leave_unrecorded(observer)?;
            }
            let is_over = target.has_ended() && self.processes.is_empty();
            if interrupted || is_over && !self.more_come(target, observer)? {
                return Ok(interrupted);
            }
            self.processes.iter().filter(|it| it.wants_channels()).for_each(TracedProcess::recycle_channels);
            if sampled.elapsed() >= sample_interval(self.processes.len()) && self.clock.has_begun() {
                sampled = Instant::now();
                self.sample(target.has_ended(), observer);
            }
            if judged.elapsed() >= JUDGE_INTERVAL && self.clock.has_begun() {
                judged = Instant::now();
                self.budget.judge(&mut self.processes);
            }
            if written.elapsed() >= WRITE_INTERVAL {
                written = Instant::now();
                self.write()?;
            }
            // More may have registered meanwhile.
            if !has_accepted && let Some(pause) = backoff.after(words, self.processes.len()) {
                let in_vain = Woken { by_others: woken.by_others && ended.is_empty(), ..woken };
                ended_by = self.pause(pause, in_vain, target, observer);
            }
        }
    }

    /// Sleeps for so long, or until somebody comes, ends or rings. Who ended the last pause in vain would keep us awake, and is not waited for.
    fn pause(
        &mut self,
        longest: Duration,
        in_vain: Woken,
        target: &dyn Target,
        observer: &mut dyn Observer,
    ) -> Woken {
        if let Some(doorbells) = &mut self.doorbells {
            doorbells.listen_to(self.processes.iter().map(|it| (it.index, it.memory())));
        }
        let mut watched = if in_vain.by_others { Vec::new() } else { self.watched(target) };
        let others = watched.len();
        let bells = self.doorbells.as_ref().filter(|_| !in_vain.by_a_ring).map(Doorbells::descriptor);
        watched.extend(bells.as_ref().map(|bells| PollFd::from_borrowed_fd(*bells, PollFlags::IN)));
        if !observer.pause(longest, &mut watched) {
            return Woken::default();
        }
        Woken {
            by_others: watched[..others].iter().any(|it| !it.revents().is_empty()),
            by_a_ring: self.doorbells.as_ref().is_some_and(Doorbells::has_rung),
        }
    }

    /// Who comes, and who ends: the descriptors that are ready then.
    fn watched<'a>(&'a self, target: &'a dyn Target) -> Vec<PollFd<'a>> {
        let comes = self.session.as_ref().and_then(Session::own_socket);
        let ends = self.processes.iter().filter_map(TracedProcess::pidfd).take(WATCHED_MAX);
        let all = comes.into_iter().chain(target.pidfd()).chain(ends);
        all.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN)).collect()
    }

    /// Ends the processes that are still running. One that was started while others were killed is killed in a later
    /// pass; one that no descendant of ours has started is left alone.
    fn end_all(&mut self, observer: &mut dyn Observer) -> Result<(), CollectError> {
        let (ours, others) = std::mem::take(&mut self.processes).into_iter().partition(TracedProcess::kill);
        self.processes = ours;
        for process in others {
            let pid = process.pid;
            self.findings.add_unseen(format!(
                "process {pid}: it was not started by this command, so it was not killed when the time was up; what it did from then on is missing"
            ));
            process.leave();
            self.close(process, None, observer)?;
        }
        Ok(())
    }

    /// Closes those that still run: from now on they go on unrecorded.
    pub(crate) fn close_all(&mut self) -> Result<(), CollectError> {
        for process in std::mem::take(&mut self.processes) {
            process.leave();
            let exit = self.wanted.own.then_some(Exit::GoesOn);
            if exit.is_none() {
                self.findings.add_unseen(process.still_ran());
            }
            self.close(process, exit, &mut ())?;
        }
        Ok(())
    }

    /// Programs that were started and never registered become findings.
    pub(crate) fn name_missing_starts(&mut self) {
        let late = self.latecomers.as_ref().map(|late| late.sentences(&self.starts));
        self.findings.unseen.extend(self.starts.sentences());
        self.findings.unseen.extend(late.into_iter().flatten());
        self.findings.say_what_is_unsaid();
    }

    /// Collecting failed; the program shall not.
    pub(crate) fn detach(&mut self, target: &mut dyn Target) {
        self.processes.iter().for_each(TracedProcess::leave);
        while !target.has_ended() && !target.is_interrupted() {
            let registrations = self.session.as_mut().map(Session::accept_pending).unwrap_or_default();
            registrations.iter().for_each(turn_away);
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Reads all rings up to now, those of some processes to their last word; returns the number of words.
    fn drain(&mut self, to_the_end: impl Fn(&TracedProcess) -> bool + Sync) -> Result<u64, CollectError> {
        let until_tsc = self.clock.note();
        let (clock, sink) = (&self.clock, &SharedSink::new(&mut self.sink));
        let has_much = |process: &&TracedProcess| process.pending_words() >= MUCH_WORDS;
        let much = if self.processes.len() > 1 { self.processes.iter().filter(has_much).count() } else { 0 };
        let words = self.workers.sum(&mut self.processes, much, |process| {
            let until = if to_the_end(process) { u64::MAX } else { until_tsc };
            process.drain(clock, until, &mut &*sink)
        })?;
        self.processes.iter_mut().for_each(|process| process.take_starts(&mut self.starts));
        Ok(words)
    }

    fn sample(&mut self, command_has_ended: bool, observer: &mut dyn Observer) {
        let are_waited_for = command_has_ended && self.wanted.exited;
        for process in &mut self.processes {
            process.look_for_another(&self.starts, are_waited_for);
            process.sample(&self.clock);
            process.recycle_channels();
            observer.sampled(process);
        }
    }

    /// Leaves processes of which no more is to be read.
    fn leave_damaged(&mut self, observer: &mut dyn Observer) -> Result<(), CollectError> {
        while let Some(at) = self.processes.iter().position(|process| process.beyond().is_some()) {
            let process = self.processes.remove(at);
            process.leave();
            self.close(process, None, observer)?;
        }
        Ok(())
    }

    /// Takes in who has come meanwhile. Returns whether there was anybody, or still may be.
    fn more_come(
        &mut self,
        target: &mut dyn Target,
        observer: &mut dyn Observer,
    ) -> Result<bool, CollectError> {
        let late = self.latecomers.as_mut();
        // Whoever is not seen by this has ended, and what it sent before is read below.
        let are_awaited = late.is_some_and(|late| late.are_awaited(target.first(), &self.starts));
        Ok(self.accept(Session::accept_last, target, observer)? || are_awaited)
    }

    /// Leaves processes in which other programs run, when nothing more comes of any process.
    fn leave_unrecorded(&mut self, observer: &mut dyn Observer) -> Result<(), CollectError> {
        if !self.processes.iter().all(|process| process.image().is_unrecorded()) {
            return Ok(());
        }
        for mut process in std::mem::take(&mut self.processes) {
            process.drain_to_the_end(&self.clock, &mut self.sink)?;
            self.close(process, Some(Exit::GoesOn), observer)?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), CollectError> {
        for process in &mut self.processes {
            process.write(&mut self.sink)?;
        }
        self.sink.flush()
    }

    /// Where processes register, if they do.
    pub(crate) fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// Takes in those who have registered. Returns true when there were some.
    fn accept(
        &mut self,
        come: fn(&mut Session) -> Vec<Registration>,
        target: &mut dyn Target,
        observer: &mut dyn Observer,
    ) -> Result<bool, CollectError> {
        let registrations = self.session.as_mut().map(come).unwrap_or_default();
        let any = !registrations.is_empty();
        for registration in registrations {
            if self.budget.is_shunned(&registration.peer) {
                turn_away(&registration);
                continue;
            }
            target.registered(registration.peer.pid);
            self.replace_image(registration.peer.pid, observer)?;
            match self.take_in(registration) {
                Err(error @ CollectError::CannotWrite { .. }) => return Err(error),
                Err(error) => self.findings.add_unseen(error.to_string()),
                Ok(()) => {}
            }
        }
        Ok(any)
    }

    /// Takes a process in.
    pub(crate) fn take_in(&mut self, registration: Registration) -> Result<(), CollectError> {
        let (index, wanted) = (self.registered, self.wanted);
        let executables = &mut self.executables;
        let process =
            TracedProcess::begin(registration, index, wanted, executables, &self.clock, &mut self.sink)?;
        self.starts.meet(process.at_start().pid, Moment::of_registration(process.at_start(), index));
        self.remains = None;
        if self.registered == 0 && !wanted.own {
            self.doorbells = Doorbells::start();
        }
        self.processes.push(process);
        self.registered += 1;
        Ok(())
    }

    /// A process that registers again has become another program.
    fn replace_image(&mut self, pid: u32, observer: &mut dyn Observer) -> Result<(), CollectError> {
        if let Some(at) = self.processes.iter().position(|process| process.pid == pid) {
            let mut before = self.processes.remove(at);
            self.clock.note();
            before.drain_to_the_end(&self.clock, &mut self.sink)?;
            self.budget.note_replaced(&mut before);
            self.close(before, Some(Exit::Exec), observer)?;
        }
        Ok(())
    }

    /// Closes the processes that have ended and are read to their last word.
    fn finalize_exited(
        &mut self,
        ended: &[u32],
        target: &mut dyn Target,
        observer: &mut dyn Observer,
    ) -> Result<(), CollectError> {
        for index in ended {
            let Some(at) = self.processes.iter().position(|process| process.index == *index) else {
                continue;
            };
            let mut process = self.processes.remove(at);
            let exit = target.own_exit(process.pid).or_else(|| process.exit());
            process.drain_to_the_end(&self.clock, &mut self.sink)?;
            if !target.is_own(process.pid) {
                process.reap();
            }
            self.close(process, exit, observer)?;
        }
        Ok(())
    }

    fn close(
        &mut self,
        mut process: TracedProcess,
        exit: Option<Exit>,
        observer: &mut dyn Observer,
    ) -> Result<(), CollectError> {
        process.take_starts(&mut self.starts);
        observer.sampled(&process);
        if exit != Some(Exit::Exec) || process.beyond().is_some() {
            self.budget.note_ended(&process);
        }
        if exit != Some(Exit::Exec) {
            process.image().sentence().into_iter().for_each(|sentence| self.findings.add_unseen(sentence));
        }
        let blind = self.findings.add(&process);
        self.findings.add_end(process.pid, exit);
        let libraries = self.session.as_ref().map(|session| session.unseen_libraries(process.pid));
        let blind = self.findings.add_libraries(blind, libraries.unwrap_or_default());
        let (exited, remains) = process.end(exit, &self.clock, &mut self.sink)?;
        self.remains = Some(remains).filter(|_| self.wanted.exited && self.processes.is_empty());
        if self.wanted.exited {
            self.exited.push(ExitedProcess { blind, ..exited });
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "collector_tests.rs"]
mod tests;
