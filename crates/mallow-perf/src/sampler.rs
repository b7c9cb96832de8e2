//! The loop around the rings: start, read, end.

use crate::adopted::{Adopted, SharedSampling};
use crate::asleep::asleep;
use crate::attr::{self, Event, Granted, Purpose, Rate, Wanted};
use crate::clock::{PAUSE, now_ns};
use crate::error::refused;
use crate::inside::{Inside, preload};
use crate::kernel_names::KernelNames;
use crate::maps::maps_of;
use crate::ring::Ring;
use crate::rounds::{Rounds, Waiting, in_order};
use crate::runtimes::remove_lists;
use crate::urgency::Urgent;
use crate::{Folder, Origin, PerfError, Sampled};
use linux_perf_event_reader::{EventRecord, RawEventRecord, RecordParseInfo, RecordType};
use mallow_counters::Event as Counted;
use mallow_launch::{Content, Interrupts, Launch, RunningCommand, SpawnOptions, start_unrecorded};
use mallow_wire::timers::VARIABLE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use rustix::time::{ClockId, clock_gettime};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A program that runs for so long is worth what is read ahead for it.
const AHEAD_AFTER: Duration = Duration::from_millis(100);
/// For how long a ring can store records until it is full.
const RING_SECONDS: f64 = 0.16;
/// The minimal and maximal size of a ring in bytes.
const RING_BYTES: std::ops::RangeInclusive<u64> = 128 << 10..=64 << 20;
/// Assumed samples per second if it is unknown: waits, and each N-th of events that come in bursts.
const WAITS_HZ: u64 = 2000;
const BURST_HZ: u64 = 8000;
/// Bytes of a ring of switches, which are small: a second of more than programs can make.
const SWITCH_RING_BYTES: u64 = 2 << 20;
/// A record beside the stack that it holds.
const RECORD_BYTES: u64 = 256;

/// Sampling options.
#[derive(Debug)]
pub struct SamplingOptions {
    /// The event that triggers samples; `None` for cycles, or the kernel's timer if they cannot be counted.
    pub event: Option<Counted>,
    /// The sampling rate.
    pub rate: Rate,
    /// Whether off-CPU time is measured, with its stacks.
    pub off_cpu: bool,
    /// The copied bytes of a stack, a multiple of 8 and less than 64 KiB.
    pub stack_bytes: u32,
    /// Single samples are left out; only sums by stack are kept.
    pub summary_only: bool,
    /// When sampling ends, if not before.
    pub duration: Option<Duration>,
    /// Timers of the command's threads make the samples, whether the kernel has perf events or not.
    pub timers_only: bool,
    /// The library that is preloaded into the command.
    pub inside: Content<'static>,
    /// If perf events take the samples, nothing is preloaded and no runtime is configured.
    pub leaves_alone: bool,
}

/// The target of sampling.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// A command that is started, and what it starts.
    Command {
        /// Its words.
        words: &'a [OsString],
        /// Its input, its output and its limits.
        spawn: &'a SpawnOptions,
    },
    /// A process that runs, and what it starts from now on.
    Process(u32),
}

/// The results.
#[derive(Debug)]
pub struct Outcome {
    /// The profile, without names of functions in files.
    pub sampled: Sampled,
    /// Its process id.
    pub pid: u32,
    /// How the command ended; `None` for a process that is not ours, or if it was not waited for.
    pub exit: Option<ExitStatus>,
    /// Somebody stopped us.
    pub interrupted: bool,
    /// Sentences about what was missing or odd.
    pub notes: Vec<String>,
    /// The time on processors that the collecting itself took.
    pub collector_cpu: Duration,
}

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
    let mut sampler = Sampler::open(wanted, granted, options, pid)?;
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

/// Returns a command as it is written in a profile.
pub(crate) fn command_words(words: &[OsString]) -> Vec<String> {
    words.iter().map(|word| word.to_string_lossy().into_owned()).collect()
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

fn ring_bytes(options: &SamplingOptions, purpose: Purpose) -> u64 {
    let record = u64::from(options.stack_bytes) + RECORD_BYTES;
    let hz = match (purpose, options.rate) {
        (Purpose::Switches, _) => return SWITCH_RING_BYTES,
        (Purpose::Waits, _) => WAITS_HZ,
        (Purpose::Samples, Rate::Hz(hz)) => hz,
        (Purpose::Samples, Rate::Every(_)) => BURST_HZ,
    };
    let bytes = (record * hz) as f64 * RING_SECONDS;
    (bytes as u64).clamp(*RING_BYTES.start(), *RING_BYTES.end()).next_power_of_two()
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

struct Sampler {
    rings: Vec<Ring>,
    /// Events whose records go into the ring of their processor: of other threads, and of waits.
    more: Vec<Event>,
    /// The numbers of those of waits, in their order.
    of_waits: Vec<u64>,
    folder: Folder,
    wanted: Wanted,
    granted: Granted,
    /// Each processor with its ring of samples.
    processors: Vec<(i32, usize)>,
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
    fn open(
        wanted: Wanted,
        granted: Granted,
        options: &SamplingOptions,
        pid: Option<u32>,
    ) -> Result<Sampler, PerfError> {
        let mut notes = Vec::new();
        let threads = match pid {
            None => vec![0],
            Some(pid) => threads_of(pid)?.iter().map(|(tid, _)| *tid as i32).collect(),
        };
        let (mut rings, mut more, mut of_waits) = (Vec::new(), Vec::new(), Vec::new());
        let mut with_ring = Vec::new();
        let purposes = if options.off_cpu { &Purpose::ALL[..] } else { &[Purpose::Samples] };
        let asked = Purpose::ALL.map(|purpose| ring_bytes(options, purpose));
        let mut bytes = asked;
        for processor in processors() {
            // Each has a ring of its own, so that nothing else is lost where waits have more stacks than can be taken.
            let mut of_processor: [Option<usize>; 3] = [None; 3];
            let of_samples = Purpose::Samples as usize;
            for (thread, purpose) in
                threads.iter().flat_map(|thread| purposes.iter().map(move |it| (thread, *it)))
            {
                let event = match attr::open(&wanted, &granted, purpose, *thread, processor) {
                    Ok(event) => event,
                    // A thread may have ended, and a processor be off.
                    Err(error) if matches!(error.raw_os_error(), Some(3 | 19)) => continue,
                    Err(error) => return Err(refused(&error, pid, None)),
                };
                if purpose == Purpose::Waits {
                    of_waits.push(event.id().map_err(system("tell events apart"))?);
                }
                match of_processor[purpose as usize] {
                    None => {
                        of_processor[purpose as usize] = Some(rings.len());
                        rings.push(mapped(event, &mut bytes[purpose as usize])?);
                    }
                    Some(ring) => {
                        event.write_to_ring_of(&rings[ring].event).map_err(system("share a ring"))?;
                        more.push(event);
                    }
                }
            }
            with_ring.extend(of_processor[of_samples].map(|ring| (processor, ring)));
        }
        if rings.is_empty() {
            return Err(pid.map_or_else(
                || refused(&std::io::Error::from_raw_os_error(19), pid, None),
                PerfError::NoProcess,
            ));
        }
        if bytes != asked {
            notes.push(format!(
                "the system allows only {} KiB of locked memory for samples of each processor, so some may be lost; raise \
                 kernel.perf_event_mlock_kb or run mallow with sudo",
                bytes[0] >> 10
            ));
        }
        let waiting = rings.iter().map(|_| Vec::new()).collect();
        of_waits.sort_unstable();
        Ok(Sampler {
            rings,
            more,
            of_waits,
            folder: Folder::new(origin(&granted, options)),
            parse: attr::parse_info(&granted),
            wanted,
            granted,
            processors: with_ring,
            inside: None,
            leaves_alone: options.leaves_alone,
            rounds: Rounds::default(),
            waiting,
            order: Vec::new(),
            notes,
            began: Instant::now(),
            began_ns: 0,
            began_unix_ns: 0,
        })
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
        let adopted = Adopted::new(self.processors.len()).map_err(system("make a memory for scripts"))?;
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
            processors: &self.processors,
            rings: &self.rings,
        });
    }

    fn add_running(&mut self, pid: u32, options: &SamplingOptions) -> Result<(), PerfError> {
        for event in self.rings.iter().map(|ring| &ring.event).chain(&self.more) {
            event.enable(true).map_err(system("begin to sample"))?;
        }
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
        let mut outcome = self.end(pid, command, duration, interrupted);
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
        Ok(self.end(pid, command, duration, false))
    }

    /// Waits until a ring fills up, something ends, or a moment has passed.
    fn wait(&self, ended: Option<&OwnedFd>, options: &SamplingOptions) {
        let pause = self.folder.pause();
        let left = options
            .duration
            .map_or(pause, |duration| duration.saturating_sub(self.began.elapsed()).min(pause));
        // Where records wait already the watermark is passed, and would wake us at once.
        let is_filling = self.rings.iter().any(|ring| ring.head() - ring.tail() >= ring.data_bytes() / 4);
        let (left, flags) =
            if is_filling { (Duration::from_millis(1), PollFlags::empty()) } else { (left, PollFlags::IN) };
        let mut files: Vec<PollFd<'_>> =
            self.rings.iter().map(|ring| PollFd::new(&ring.event.file, flags)).collect();
        files.extend(ended.map(|file| PollFd::new(file, PollFlags::IN)));
        files.extend(self.inside.iter().map(|inside| PollFd::new(inside.adopted.asks(), PollFlags::IN)));
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let _ = poll(&mut files, Some(&left));
    }

    /// Hands over what may be; at the end everything.
    fn round(&mut self, is_last: bool) {
        let up_to = self.rounds.begin(now_ns());
        let up_to = if is_last { u64::MAX } else { up_to };
        let mut heads = Vec::with_capacity(self.rings.len());
        for (number, (ring, waiting)) in self.rings.iter().zip(&mut self.waiting).enumerate() {
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
        if let Some(inside) = &mut self.inside {
            inside.take(&mut self.folder);
        }
        for waiting in &self.order {
            let Some(record) = self.rings[waiting.ring].record(waiting.at, heads[waiting.ring]) else {
                continue;
            };
            let raw = RawEventRecord::new(RecordType(record.kind), record.misc, record.body, self.parse);
            match raw.parse() {
                Ok(EventRecord::Sample(sample))
                    if sample.id.is_some_and(|id| self.of_waits.binary_search(&id).is_ok()) =>
                {
                    self.folder.waits(&sample, waiting.time_ns);
                }
                Ok(EventRecord::ContextSwitch(switch)) => {
                    let known = raw.common_data().ok().and_then(|data| Some((data.pid?, data.tid?)));
                    if let Some((pid, tid)) = known.filter(|(pid, _)| *pid > 0) {
                        self.folder.switched(&switch, pid as u32, tid as u32, waiting.time_ns);
                    }
                }
                Ok(parsed) => {
                    let is_taken = match (&mut self.inside, &parsed) {
                        (None, _) => false,
                        (Some(inside), EventRecord::Sample(sample)) => {
                            inside.sample(&mut self.folder, sample, waiting.time_ns)
                        }
                        (Some(inside), other) => {
                            inside.record(&mut self.folder, other, waiting.time_ns);
                            false
                        }
                    };
                    if !is_taken {
                        self.folder.record(&parsed, Some(waiting.time_ns));
                    }
                }
                Err(_) => {}
            }
        }
        if !is_last && self.began.elapsed() >= AHEAD_AFTER {
            self.folder.read_kernel_names_ahead();
        }
        for waiting in self.order.drain(..) {
            let ring = &mut self.rings[waiting.ring];
            let end = ring.record(waiting.at, heads[waiting.ring]).map(|record| record.end);
            if let Some(end) = end.filter(|end| *end > ring.tail()) {
                ring.release(end);
            }
        }
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

    fn end(mut self, pid: u32, command: Vec<String>, duration: Duration, interrupted: bool) -> Outcome {
        for event in self.rings.iter().map(|ring| &ring.event).chain(&self.more) {
            let _ = event.enable(false);
        }
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
        let duration = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.folder.end(self.began_ns.saturating_add(duration));
        let lost = |is_of_wait: bool| -> u64 {
            let events = self.rings.iter().map(|ring| &ring.event).chain(&self.more);
            events.filter(|event| (event.purpose == Purpose::Waits) == is_of_wait).map(Event::lost).sum()
        };
        let of_scripts = self.inside.as_ref().map_or(0, |inside| inside.adopted.lost());
        self.folder.lost(lost(false) + of_scripts);
        let without_stack = lost(true);
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
        Outcome { sampled, pid, exit: None, interrupted, notes: self.notes, collector_cpu }
    }
}

/// Maps a ring as large as the system allows.
fn mapped(event: Event, bytes: &mut u64) -> Result<Ring, PerfError> {
    let mut event = event;
    loop {
        match Ring::map(event, *bytes as usize) {
            Ok(ring) => return Ok(ring),
            Err((back, error)) if error.raw_os_error() == Some(1) && *bytes > *RING_BYTES.start() => {
                event = back;
                *bytes /= 2;
            }
            Err((_, error)) => return Err(system("map a ring for samples")(error)),
        }
    }
}

pub(crate) fn system(what: &'static str) -> impl Fn(std::io::Error) -> PerfError {
    move |cause| PerfError::System { what, cause }
}

fn pid_of(pid: u32) -> Pid {
    Pid::from_raw(pid as i32).unwrap_or(Pid::INIT)
}

pub(crate) fn pidfd(pid: u32) -> Option<OwnedFd> {
    pidfd_open(pid_of(pid), PidfdFlags::empty()).ok()
}

/// The processors that are on.
fn processors() -> Vec<i32> {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let parts = online.trim().split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<i32>().ok()?..=last.parse::<i32>().ok()?)
    });
    let processors: Vec<i32> = parts.flatten().collect();
    if processors.is_empty() { vec![0] } else { processors }
}

fn threads_of(pid: u32) -> Result<Vec<(u32, String)>, PerfError> {
    let folder = std::fs::read_dir(format!("/proc/{pid}/task")).map_err(|_| PerfError::NoProcess(pid))?;
    let threads = folder.flatten().filter_map(|entry| {
        let name = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        Some((entry.file_name().to_str()?.parse().ok()?, name.trim_end().to_owned()))
    });
    Ok(threads.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_holds_a_sixth_of_a_second() {
        let options = |hz, stack_bytes| SamplingOptions {
            event: None,
            rate: Rate::Hz(hz),
            off_cpu: false,
            stack_bytes,
            summary_only: false,
            duration: None,
            timers_only: false,
            inside: Content::Plain(&[]),
            leaves_alone: true,
        };
        let ring_bytes = |options, purpose| ring_bytes(&options, purpose);
        assert_eq!(ring_bytes(options(997, 32 << 10), Purpose::Samples), 8 << 20);
        assert_eq!(ring_bytes(options(1, 8), Purpose::Samples), 128 << 10);
        assert_eq!(ring_bytes(options(100_000, 65_528), Purpose::Samples), 64 << 20);
        assert_eq!(ring_bytes(options(1, 32 << 10), Purpose::Waits), 16 << 20);
    }
}
