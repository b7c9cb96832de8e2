//! The loop around the rings: start, read, end.

use crate::adopted::{Adopted, SharedSampling};
use crate::asleep::asleep;
use crate::attr::{self, Granted, Purpose, Rate, Wanted};
use crate::clock::{PAUSE, now_ns};
use crate::error::system;
use crate::events::{Events, ring_bytes, threads_of};
use crate::inside::{Inside, preload};
use crate::kernel_names::KernelNames;
use crate::left_behind;
use crate::maps::maps_of;
use crate::rounds::{Rounds, Waiting, in_order};
use crate::runtimes::remove_lists;
use crate::sampling::{Outcome, SamplingOptions, Target, command_words};
use crate::urgency::Urgent;
use crate::{Folder, Origin, PerfError};
use linux_perf_event_reader::{EventRecord, RawEventRecord, RecordParseInfo, RecordType};
use mallow_launch::{Interrupts, Launch, RunningCommand, SpawnOptions, start_unrecorded};
use mallow_wire::timers::VARIABLE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::process::Child;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A program that runs for so long is worth what is read ahead for it.
const AHEAD_AFTER: Duration = Duration::from_millis(100);

/// Samples by perf events, until the command or the process ends, the time is over, or it is stopped.
pub(crate) fn by_events(
    target: Target<'_>,
    options: &SamplingOptions,
    interrupts: Interrupts,
) -> Result<Outcome, PerfError> {
    let pid = match target {
        Target::Command { .. } => None,
        Target::Process(pid) => Some(pid),
    };
    let wanted = wanted(options, pid.is_none());
    let granted = attr::grant(&wanted, pid.map_or(0, |pid| pid as i32), pid)?;
    let names = if granted.kernel_seen { KernelNames::with_reader() } else { KernelNames::default() };
    let events = Events::open(&wanted, &granted, options, pid)?;
    let mut sampler = Sampler::new(wanted, granted, events, options);
    sampler.folder.take_kernel_names(names);
    match target {
        Target::Command { words, spawn } => {
            // Nothing that it does precedes the beginning.
            sampler.started();
            // The events are those of this thread, and whatever it starts inherits them; they wake up with the program.
            let child = sampler.start(words, spawn, options)?;
            let pid = child.id();
            let running = RunningCommand::new(child, interrupts, None);
            sampler.run_command(running, pid, command_words(words), options)
        }
        Target::Process(pid) => {
            sampler.started();
            sampler.add_running(pid, options)?;
            sampler.run_attached(pid, interrupts, options)
        }
    }
}

fn wanted(options: &SamplingOptions, on_exec: bool) -> Wanted {
    let bytes = ring_bytes(options, Purpose::Samples);
    Wanted {
        event: options.event.clone(),
        rate: options.rate,
        stack_bytes: options.stack_bytes,
        off_cpu: options.off_cpu,
        on_exec,
        wake_bytes: (bytes / 4) as u32,
    }
}

fn origin(granted: &Granted, options: &SamplingOptions) -> Origin {
    Origin {
        event: granted.event.name().to_owned(),
        is_time: granted.event.is_time(),
        frequency_hz: match options.rate {
            Rate::Hz(hz) => Some(hz),
            Rate::Every(_) => None,
        },
        stack_bytes: options.stack_bytes as usize,
        kernel_seen: granted.kernel_seen && !granted.event.is_user_only(),
        off_cpu: options.off_cpu,
        summary_only: options.summary_only,
        is_our_kernel: true,
        is_our_machine: true,
        is_now: true,
    }
}

/// Why sampling ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The command has ended.
    OfCommand,
    /// The user does not want to wait for that.
    Interrupted,
    /// The time is up, or an attached process has ended or been left.
    Stopped,
}

struct Sampler {
    events: Events,
    folder: Folder,
    wanted: Wanted,
    granted: Granted,
    /// Data from inside the processes, if something is preloaded.
    inside: Option<Inside>,
    leaves_alone: bool,
    parse: RecordParseInfo,
    rounds: Rounds,
    waiting: Vec<Vec<Waiting>>,
    order: Vec<Waiting>,
    notes: Vec<String>,
    began: Instant,
    began_ns: u64,
    began_unix_ns: u64,
}

impl Sampler {
    fn new(wanted: Wanted, granted: Granted, events: Events, options: &SamplingOptions) -> Sampler {
        Sampler {
            folder: Folder::new(origin(&granted, options)),
            parse: attr::parse_info(&granted),
            wanted,
            granted,
            inside: None,
            leaves_alone: options.leaves_alone,
            rounds: Rounds::default(),
            waiting: events.rings.iter().map(|_| Vec::new()).collect(),
            order: Vec::new(),
            notes: events.note().into_iter().collect(),
            events,
            began: Instant::now(),
            began_ns: 0,
            began_unix_ns: 0,
        }
    }

    fn started(&mut self) {
        self.began = Instant::now();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.began_unix_ns = u64::try_from(since.as_nanos()).unwrap_or(0);
        self.began_ns = now_ns();
        self.folder.begin(self.began_ns);
    }

    /// Starts a command, with our library in it where one gets in.
    fn start(
        &mut self,
        words: &[OsString],
        spawn: &SpawnOptions,
        options: &SamplingOptions,
    ) -> Result<Child, PerfError> {
        let launch = if options.leaves_alone { None } else { Launch::by_loader(words).ok() };
        let Some(launch) = launch else { return Ok(start_unrecorded(words, spawn)?) };
        let adopted =
            Adopted::new(self.events.processors.len()).map_err(system("make a memory for scripts"))?;
        let (path, wake) = (adopted.memory.path(), adopted.wake_variable());
        let variables = [(VARIABLE, path.as_str()), (wake.0, wake.1.as_str())];
        self.inside = Some(Inside::new(adopted));
        Ok(launch.start(preload(options.inside, &variables), spawn)?)
    }

    /// Answers processes that ask for events of their own.
    fn answer(&mut self) {
        let Some(inside) = &mut self.inside else { return };
        inside.adopted.answer(&SharedSampling {
            wanted: &self.wanted,
            granted: &self.granted,
            processors: &self.events.processors,
            rings: &self.events.rings,
        });
    }

    fn add_running(&mut self, pid: u32, options: &SamplingOptions) -> Result<(), PerfError> {
        self.events.enable()?;
        // After that: later mappings come as records, and adding one twice does no harm.
        let name =
            std::fs::read_to_string(format!("/proc/{pid}/comm")).map_err(|_| PerfError::NoProcess(pid))?;
        let threads = threads_of(pid)?;
        self.folder.add_process(pid, name.trim_end(), &threads, &maps_of(pid));
        if options.off_cpu {
            let asleep = asleep(pid, &threads, options.stack_bytes as usize);
            let now_ns = now_ns();
            asleep.iter().for_each(|thread| self.folder.waits_already(pid, thread, now_ns));
        }
        Ok(())
    }

    fn run_command(
        mut self,
        mut running: RunningCommand,
        pid: u32,
        command: Vec<String>,
        options: &SamplingOptions,
    ) -> Result<Outcome, PerfError> {
        let (ended, urgent) = (pidfd(pid), Urgent::begin());
        let mut interrupted = false;
        let is_over = loop {
            let is_over = options.duration.is_some_and(|duration| self.began.elapsed() >= duration);
            interrupted |= running.is_interrupted();
            if is_over || interrupted || running.has_ended() {
                break is_over;
            }
            self.wait(ended.as_ref(), options);
            self.answer();
            self.round(false);
        };
        drop(urgent);
        let duration = self.began.elapsed();
        let ending = match (interrupted, is_over) {
            (true, _) => Ending::Interrupted,
            (false, true) => Ending::Stopped,
            (false, false) => Ending::OfCommand,
        };
        let mut outcome = self.end(pid, command, duration, ending);
        // The time is over and the program still runs: it goes on, and we wait for its end.
        while is_over && !running.has_ended() && !running.is_interrupted() {
            std::thread::sleep(PAUSE);
        }
        outcome.exit = running.status();
        Ok(outcome)
    }

    fn run_attached(
        mut self,
        pid: u32,
        interrupts: Interrupts,
        options: &SamplingOptions,
    ) -> Result<Outcome, PerfError> {
        let (ended, urgent) = (pidfd(pid), Urgent::begin());
        let is_gone = || rustix::process::test_kill_process(pid_of(pid)).is_err();
        loop {
            let is_over = options.duration.is_some_and(|duration| self.began.elapsed() >= duration);
            if is_over || interrupts.heard() > 0 || is_gone() {
                break;
            }
            self.wait(ended.as_ref(), options);
            self.round(false);
        }
        drop(urgent);
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = command.split(|byte| *byte == 0).filter(|word| !word.is_empty());
        let command = command.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        let duration = self.began.elapsed();
        Ok(self.end(pid, command, duration, Ending::Stopped))
    }

    /// Waits until a ring fills up, something ends, or a moment has passed.
    fn wait(&self, ended: Option<&OwnedFd>, options: &SamplingOptions) {
        let pause = self.folder.pause();
        let left = options
            .duration
            .map_or(pause, |duration| duration.saturating_sub(self.began.elapsed()).min(pause));
        // Where records wait already the watermark is passed, and would wake us at once.
        let is_filling =
            self.events.rings.iter().any(|ring| ring.head() - ring.tail() >= ring.data_bytes() / 4);
        let (left, flags) =
            if is_filling { (Duration::from_millis(1), PollFlags::empty()) } else { (left, PollFlags::IN) };
        let mut files: Vec<PollFd<'_>> =
            self.events.rings.iter().map(|ring| PollFd::new(&ring.event.file, flags)).collect();
        files.extend(ended.map(|file| PollFd::new(file, PollFlags::IN)));
        files.extend(self.inside.iter().map(|inside| PollFd::new(inside.adopted.asks(), PollFlags::IN)));
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let _ = poll(&mut files, Some(&left));
    }

    /// Hands over what may be; at the end everything.
    fn round(&mut self, is_last: bool) {
        let up_to = self.rounds.begin(now_ns());
        let heads = self.look(if is_last { u64::MAX } else { up_to });
        if let Some(inside) = &mut self.inside {
            inside.take(&mut self.folder);
        }
        let mut order = std::mem::take(&mut self.order);
        for waiting in &order {
            self.hand_over(waiting, heads[waiting.ring]);
        }
        if !is_last && self.began.elapsed() >= AHEAD_AFTER {
            self.folder.read_kernel_names_ahead();
        }
        for waiting in order.drain(..) {
            let ring = &mut self.events.rings[waiting.ring];
            let end = ring.record(waiting.at, heads[waiting.ring]).map(|record| record.end);
            if let Some(end) = end.filter(|end| *end > ring.tail()) {
                ring.release(end);
            }
        }
        self.order = order;
    }

    /// Puts the records of all rings in order, up to a time. Returns where each ring's records end.
    fn look(&mut self, up_to: u64) -> Vec<u64> {
        let mut heads = Vec::with_capacity(self.events.rings.len());
        for (number, (ring, waiting)) in self.events.rings.iter().zip(&mut self.waiting).enumerate() {
            let head = ring.head();
            heads.push(head);
            waiting.clear();
            let (mut at, mut latest) = (ring.tail(), 0);
            while let Some(record) = ring.record(at, head) {
                let raw = RawEventRecord::new(RecordType(record.kind), record.misc, record.body, self.parse);
                latest = raw.timestamp().unwrap_or(latest);
                if latest > up_to {
                    break;
                }
                waiting.push(Waiting { time_ns: latest, ring: number, at });
                at = record.end;
            }
        }
        in_order(&self.waiting, up_to, &mut self.order);
        heads
    }

    /// Hands one record to those who are concerned.
    fn hand_over(&mut self, waiting: &Waiting, head: u64) {
        let Some(record) = self.events.rings[waiting.ring].record(waiting.at, head) else { return };
        let raw = RawEventRecord::new(RecordType(record.kind), record.misc, record.body, self.parse);
        let Ok(parsed) = raw.parse() else { return };
        match &parsed {
            EventRecord::Sample(sample) if sample.id.is_some_and(|id| self.events.is_of_wait(id)) => {
                return self.folder.waits(sample, waiting.time_ns);
            }
            EventRecord::ContextSwitch(switch) => {
                let known = raw.common_data().ok().and_then(|data| Some((data.pid?, data.tid?)));
                if let Some((pid, tid)) = known.filter(|(pid, _)| *pid > 0) {
                    self.folder.switched(switch, pid as u32, tid as u32, waiting.time_ns);
                }
                return;
            }
            EventRecord::Sample(sample) => {
                let inside = self.inside.as_mut();
                if inside.is_some_and(|inside| inside.sample(&mut self.folder, sample, waiting.time_ns)) {
                    return;
                }
            }
            other => {
                if let Some(inside) = &mut self.inside {
                    inside.record(&mut self.folder, other, waiting.time_ns);
                }
            }
        }
        self.folder.record(&parsed, Some(waiting.time_ns));
    }

    /// Processes with an interpreter that nothing was preloaded into.
    fn note_not_looked_into(&mut self) {
        let told: Vec<String> =
            self.folder.not_looked_into().iter().map(|(pid, name)| format!("{name} ({pid})")).collect();
        if let Some(first) = told.first() {
            let more = if told.len() > 1 { format!(" and {} more", told.len() - 1) } else { String::new() };
            self.notes.push(format!(
                "nobody looked into the interpreter of {first}{more}, so stacks there have no lines of scripts: these are seen where mallow \
                 starts the program and its interpreter is there from the beginning"
            ));
        }
    }

    fn end(mut self, pid: u32, command: Vec<String>, duration: Duration, ending: Ending) -> Outcome {
        self.events.disable();
        if let Some(inside) = &mut self.inside {
            inside.adopted.stop();
        }
        self.round(true);
        if let Some(inside) = &mut self.inside {
            inside.end(&mut self.folder);
            self.notes.extend(inside.notes());
        }
        if !self.leaves_alone {
            self.note_not_looked_into();
        }
        self.notes.extend(self.folder.java_sentences());
        if ending == Ending::OfCommand {
            self.notes.extend(left_behind::sentence(&self.folder.left_behind()));
        }
        let duration = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.folder.end(self.began_ns.saturating_add(duration));
        let of_scripts = self.inside.as_ref().map_or(0, |inside| inside.adopted.lost());
        self.folder.lost(self.events.lost(false) + of_scripts);
        let without_stack = self.events.lost(true);
        if without_stack > 0 {
            self.notes.push(format!(
                "{without_stack} waits came too quickly for their stacks to be copied, and count without one; a smaller \
                 --stack-size leaves more room"
            ));
        }
        let collector_cpu = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
        let sampled = self.folder.finish(command, self.began_unix_ns, Some(duration));
        if let Some(inside) = &self.inside {
            remove_lists(&inside.asked, self.began_unix_ns);
        }
        let interrupted = ending == Ending::Interrupted;
        Outcome { sampled, pid, exit: None, interrupted, notes: self.notes, collector_cpu }
    }
}

fn pid_of(pid: u32) -> Pid {
    Pid::from_raw(pid as i32).unwrap_or(Pid::INIT)
}

pub(crate) fn pidfd(pid: u32) -> Option<OwnedFd> {
    pidfd_open(pid_of(pid), PidfdFlags::empty()).ok()
}
