//! Samples where the kernel refuses perf events: a preloaded library has a timer for each thread, and leaves registers and stacks in a shared
//! memory.
//!
//! A process says what is mapped in it when it begins. What it maps later is looked up when a sample lies in none of that, as long as it lives.

use crate::clock::{PAUSE, now_ns};
use crate::error::system;
use crate::inside::{note_of, preload};
use crate::joins::ScriptNote;
use crate::left_behind;
use crate::maps::{mapped, maps_of};
use crate::memory::{Head, Memory, SlotContents, own_filters};
use crate::runtimes::remove_lists;
use crate::sampler::pidfd;
use crate::sampling::command_words;
use crate::{Folder, Origin, Outcome, PerfError, Rate, SamplingOptions};
use mallow_launch::{Interrupts, Launch, LaunchError, RunningCommand, SpawnOptions};
use mallow_wire::shared::RUNTIMES_VARIABLE;
use mallow_wire::timers::{
    ASKED, BEGINS, BY_TIMERS, FORKED, HAS_SCRIPT, Header, MORE, Note, SAMPLE, SCRIPT, VARIABLE,
};

use nix::sys::resource::{UsageWho, getrusage};
use rustc_hash::FxHashMap;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_getres, clock_gettime};
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The event's name in such a profile.
const TIMERS: &str = "timers";
/// Slots for each CPU: for half a second without a reader.
const SLOTS_EACH: usize = 128;
const SLOTS_MAX: usize = 4096;
/// How often a process's mappings are read at most, and at most so often if the last read had no new code and a stack
/// was still incomplete.
const LOOK_UP_NS: u64 = 100_000_000;
const LOOK_UP_SETTLED_NS: u64 = 3_000_000_000;
/// Room for the frames of a script, however little of a stack is wanted.
const ROOM_BYTES_MIN: u32 = 16 << 10;
const SECOND_NS: u64 = 1_000_000_000;

/// Returns whether timers support the requested options.
pub(crate) fn are_enough(options: &SamplingOptions) -> bool {
    options.event.is_none() && !options.off_cpu && matches!(options.rate, Rate::Hz(_))
}

/// Samples a command.
pub(crate) fn sample(
    words: &[OsString],
    spawn: &SpawnOptions,
    options: &SamplingOptions,
    interrupts: Interrupts,
) -> Result<Outcome, PerfError> {
    let launch = Launch::by_loader(words).map_err(closed)?;
    let tick_ns = tick_ns();
    let asked_hz = match options.rate {
        Rate::Hz(hz) => hz.max(1),
        Rate::Every(_) => return Err(PerfError::Refused("timers count time, not events".to_owned())),
    };
    let memory = create(options, tick_ns, asked_hz).map_err(system("make a memory for samples"))?;
    let path = memory.path();
    let used_before_ns = used_by_children_ns();
    let mut timed = Timed::begin(memory, origin(options, asked_hz.min(SECOND_NS / tick_ns)));
    let variables = [(VARIABLE, path.as_str()), (RUNTIMES_VARIABLE, "0")];
    let variables = if options.leaves_alone { &variables[..] } else { &variables[..1] };
    let child = launch.start(preload(options.inside, variables), spawn)?;
    let pid = child.id();
    let mut running = RunningCommand::new(child, interrupts, None);
    let ended = pidfd(pid);
    let mut interrupted = false;
    let is_over = loop {
        let is_over = options.duration.is_some_and(|duration| timed.began.elapsed() >= duration);
        interrupted |= running.is_interrupted();
        if is_over || interrupted || running.has_ended() {
            break is_over;
        }
        wait(ended.as_ref(), timed.folder.pause());
        timed.round();
    };
    let used_ns = (!is_over && !interrupted).then(|| used_by_children_ns().saturating_sub(used_before_ns));
    let mut outcome = timed.end(pid, command_words(words), used_ns, interrupted);
    while is_over && !running.has_ended() && !running.is_interrupted() {
        std::thread::sleep(PAUSE);
    }
    outcome.exit = running.status();
    Ok(outcome)
}

/// Other ways to observe a program are no help for CPU time.
fn closed(error: LaunchError) -> PerfError {
    match error {
        LaunchError::CannotPreload { path, reason } => {
            let why = reason.split(';').next().unwrap_or(reason);
            PerfError::Refused(format!("timers cannot be put into '{}': {why}", path.display()))
        }
        other => other.into(),
    }
}

fn create(options: &SamplingOptions, tick_ns: u64, asked_hz: u64) -> std::io::Result<Memory> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let slots = (processors * SLOTS_EACH).clamp(2 * SLOTS_EACH, SLOTS_MAX) as u32;
    let head = Head { period_ns: SECOND_NS / asked_hz, tick_ns, filters: own_filters(), way: BY_TIMERS };
    Memory::create(slots, options.stack_bytes.max(ROOM_BYTES_MIN), head)
}

fn origin(options: &SamplingOptions, frequency_hz: u64) -> Origin {
    Origin {
        event: TIMERS.to_owned(),
        is_time: true,
        frequency_hz: Some(frequency_hz),
        stack_bytes: options.stack_bytes as usize,
        summary_only: options.summary_only,
        is_our_kernel: true,
        is_our_machine: true,
        is_now: true,
        ..Origin::default()
    }
}

/// The time between two ticks of the kernel's clock, at which timers on a thread's time expire.
fn tick_ns() -> u64 {
    let tick = clock_getres(ClockId::MonotonicCoarse);
    (tick.tv_sec as u64 * SECOND_NS + tick.tv_nsec as u64).clamp(1, SECOND_NS)
}

/// The time on processors of all children that have ended, with theirs.
fn used_by_children_ns() -> u64 {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else { return 0 };
    let nanos =
        |time: nix::sys::time::TimeVal| time.tv_sec() as u64 * SECOND_NS + time.tv_usec() as u64 * 1000;
    nanos(usage.user_time()) + nanos(usage.system_time())
}

fn wait(ended: Option<&OwnedFd>, pause: Duration) {
    let mut files: Vec<PollFd<'_>> = ended.map(|file| PollFd::new(file, PollFlags::IN)).into_iter().collect();
    let pause = Timespec { tv_sec: 0, tv_nsec: i64::from(pause.subsec_nanos()) };
    let _ = poll(&mut files, Some(&pause));
}

/// The state of the samples.
struct Timed {
    memory: Memory,
    folder: Folder,
    began: Instant,
    began_unix_ns: u64,
    /// The unfinished end of a process's text.
    cut_texts: FxHashMap<u32, String>,
    /// When a process's mappings were read last, how many there were, and whether their number was unchanged.
    looked_up: FxHashMap<u32, LookedUp>,
    /// The script's frames of the next sample, by thread.
    scripts: FxHashMap<u32, ScriptNote>,
    asked: Vec<u32>,
    seen_ns: u64,
    processes: u64,
}

impl Timed {
    fn begin(memory: Memory, origin: Origin) -> Timed {
        let mut folder = Folder::new(origin);
        folder.begin(now_ns());
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timed {
            memory,
            folder,
            began: Instant::now(),
            began_unix_ns: u64::try_from(since.as_nanos()).unwrap_or(0),
            cut_texts: FxHashMap::default(),
            looked_up: FxHashMap::default(),
            scripts: FxHashMap::default(),
            asked: Vec::new(),
            seen_ns: 0,
            processes: 0,
        }
    }

    fn round(&mut self) {
        for taken in self.taken() {
            let name = name_of(&taken.note);
            match taken.note.kind {
                BEGINS | FORKED => {
                    self.processes += 1;
                    self.folder.begins(&taken.note, &name);
                    self.cut_texts.remove(&taken.note.pid);
                    self.looked_up.remove(&taken.note.pid);
                    self.maps(&taken);
                }
                MORE => self.maps(&taken),
                SAMPLE => self.sample(&taken, &name),
                SCRIPT => _ = self.scripts.insert(taken.note.tid, note_of(&taken)),
                ASKED => self.asked.push(taken.note.pid),
                // Nobody of ours wrote it.
                _ => {}
            }
        }
    }

    /// What has come, each sample with its script's frames: these are left before it, but their slot may have been looked at before that.
    fn taken(&mut self) -> Vec<SlotContents> {
        let mut taken = self.memory.take();
        let is_whole = |taken: &[SlotContents]| {
            let waits = |it: &&SlotContents| it.note.kind == SAMPLE && it.note.flags & HAS_SCRIPT != 0;
            let has = |of: &SlotContents| {
                let is_it = |it: &SlotContents| it.note.kind == SCRIPT && it.note.time_ns == of.note.time_ns;
                taken.iter().any(|it| is_it(it) && it.note.tid == of.note.tid)
            };
            taken.iter().filter(waits).all(has)
        };
        if !is_whole(&taken) {
            taken.extend(self.memory.take());
            taken.sort_by_key(|it| (it.note.time_ns, it.note.kind != SCRIPT));
        }
        taken
    }

    /// Adds a part of a text of mappings; an unfinished line continues in the next part.
    fn maps(&mut self, taken: &SlotContents) {
        let pid = taken.note.pid;
        let mut text = self.cut_texts.remove(&pid).unwrap_or_default();
        text += &String::from_utf8_lossy(&taken.copy);
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.folder.maps(pid, &mapped(&text[..whole]));
        if whole < text.len() {
            self.cut_texts.insert(pid, text.split_off(whole));
        }
    }

    fn sample(&mut self, taken: &SlotContents, name: &str) {
        let Note { pid, time_ns, cpu_ns, .. } = taken.note;
        if pid == 0 {
            return;
        }
        self.seen_ns = self.seen_ns.saturating_add(cpu_ns);
        let looked_up = self.looked_up.entry(pid).or_default();
        let script = self.scripts.remove(&taken.note.tid).filter(|script| script.time_ns == time_ns);
        let script = script.as_ref().map(|script| (script, &self.memory));
        self.folder.by_timer(&taken.note, name, &taken.copy, script, |is_cut| {
            if looked_up.is_enough(is_cut, time_ns) {
                return Vec::new();
            }
            let mapped = maps_of(pid);
            let is_settled = mapped.len() == looked_up.mapped;
            *looked_up = LookedUp { time_ns, mapped: mapped.len(), is_settled };
            mapped
        });
    }

    fn end(mut self, pid: u32, command: Vec<String>, used_ns: Option<u64>, interrupted: bool) -> Outcome {
        let duration = self.began.elapsed();
        self.memory.header().is_over.store(1, Ordering::Relaxed);
        self.round();
        let count = |of: fn(&Header) -> &AtomicU64| of(self.memory.header()).load(Ordering::Relaxed);
        self.folder.lost(count(|header| &header.lost));
        if let Some(used_ns) = used_ns {
            self.folder.not_seen(used_ns.saturating_sub(self.seen_ns));
        }
        let counts = [
            count(|header| &header.threads_without),
            count(|header| &header.processes_filtered),
            count(|header| &header.late),
        ];
        let mut notes = notes(self.processes, counts);
        notes.extend(self.folder.scripts.sentences(|region| {
            self.memory.regions().get(region as usize).map_or(0, |of| of.pid.load(Ordering::Relaxed))
        }));
        notes.extend(self.folder.java_sentences());
        if used_ns.is_some() {
            notes.extend(left_behind::sentence(&self.folder.left_behind()));
        }
        let collector_cpu = Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap_or_default();
        let duration_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let sampled = self.folder.finish(command, self.began_unix_ns, Some(duration_ns));
        remove_lists(&self.asked, self.began_unix_ns);
        Outcome { sampled, pid, exit: None, interrupted, notes, collector_cpu }
    }
}

/// The last read of a process's mappings.
#[derive(Clone, Copy, Default)]
struct LookedUp {
    time_ns: u64,
    mapped: usize,
    is_settled: bool,
}

impl LookedUp {
    /// Returns whether it is good enough for a sample, whose stack is truncated or goes through unknown code.
    fn is_enough(self, is_cut: bool, now_ns: u64) -> bool {
        let again_ns = if self.is_settled && !is_cut { LOOK_UP_SETTLED_NS } else { LOOK_UP_NS };
        now_ns < self.time_ns.saturating_add(again_ns)
    }
}

fn name_of(note: &Note) -> String {
    let name = note.name.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// Returns what the profile does not show.
fn notes(processes: u64, [threads_without, processes_filtered, late]: [u64; 3]) -> Vec<String> {
    let mut notes = Vec::new();
    if processes == 0 && processes_filtered == 0 {
        notes.push(
            "the library with the timers got into no process, so nothing was sampled: a static program, or one with an environment of \
             its own"
                .to_owned(),
        );
    }
    if threads_without > 0 {
        notes.push(format!("threads that could have no timer and were not sampled: {threads_without}"));
    }
    if processes_filtered > 0 {
        notes.push(format!(
            "processes that a filter of system calls locked in, and that were not sampled from then on: {processes_filtered}"
        ));
    }
    if late > 0 {
        notes.push(format!(
            "samples that came late, as the program had blocked SIGURG, the timers' signal: {late}; where it was meanwhile is not known"
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_mapped_is_looked_up_more_often_where_it_is_missed() {
        let new = LookedUp { time_ns: LOOK_UP_NS, mapped: 7, is_settled: false };
        let settled = LookedUp { is_settled: true, ..new };
        let (soon, later) = (2 * LOOK_UP_NS, LOOK_UP_NS + LOOK_UP_SETTLED_NS);
        assert!(new.is_enough(true, soon - 1) && !new.is_enough(true, soon) && !new.is_enough(false, soon));
        assert!(!settled.is_enough(true, soon) && settled.is_enough(false, later - 1));
        assert!(!settled.is_enough(false, later));
        assert!(!LookedUp::default().is_enough(true, LOOK_UP_NS));
    }

    #[test]
    fn what_was_not_sampled_is_said() {
        assert_eq!(notes(1, [0; 3]), Vec::<String>::new());
        let all = [notes(0, [0; 3]), notes(1, [2, 3, 4])].concat().join("\n");
        for part in ["got into no process", "not sampled: 2", "from then on: 3", "signal: 4"] {
            assert!(all.contains(part), "{part} is missing in {all}");
        }
        assert_eq!(notes(0, [0, 1, 0]).len(), 1);
    }
}
