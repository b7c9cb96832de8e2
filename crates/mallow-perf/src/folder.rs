//! Records in, a profile out.
//!
//! Records must come in the order of time. A process's code is what was mapped when the sample was taken; a `fork` hands it on, an
//! `exec` throws it away.

mod chain;
mod folded;
mod java;
mod names;
mod scripted;
mod timed;

use chain::chain_of;
use java::WithoutLines;
use names::Names;
pub(crate) use scripted::Unfinished;
use scripted::is_interpreter;

use crate::asleep::Asleep;
use crate::kernel_names::{KernelNames, is_our_kernel, scheduler};
use crate::made_code::MadeCode;
use crate::scripts::ScriptLogs;
use crate::spaces::{End, Place, Registers, Space, Unwinding};
use crate::stack_table::StackTable;
use crate::waits::{Wait, Waits};
use linux_perf_event_reader::constants::{
    PERF_REG_X86_BP, PERF_REG_X86_DI, PERF_REG_X86_IP, PERF_REG_X86_R13, PERF_REG_X86_SP,
};
use linux_perf_event_reader::{ContextSwitchRecord, CpuMode, EventRecord, SampleRecord, TaskWasPreempted};
use mallow_cpu::{
    CpuAvailability, CpuProcess, CpuProfile, CpuRecording, CpuSample, CpuThread, CpuTotals, Quality,
    ThreadIndex,
};
use mallow_files::roots::{self, Root};
use mallow_jit::jitdump;
use mallow_jvm::{Jvm, Process};
use mallow_stacks::ProcessIndex;
use rustc_hash::FxHashMap;

/// Mappings of which code may be fetched.
const PROT_EXEC: u32 = 4;

/// The meaning of samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The event that triggers them, by perf's name.
    pub event: String,
    /// Whether their period is in nanoseconds.
    pub is_time: bool,
    /// The requested samples per second and CPU.
    pub frequency_hz: Option<u64>,
    /// The maximal number of stack bytes per sample.
    pub stack_bytes: usize,
    /// Whether kernel functions are seen.
    pub kernel_seen: bool,
    /// Whether off-CPU time is measured.
    pub off_cpu: bool,
    /// Whether single samples are omitted, for long runs.
    pub summary_only: bool,
    /// Whether it is the running kernel, so that its list of functions is valid.
    pub is_our_kernel: bool,
    /// Whether it was on this machine, where perf maps may still exist.
    pub is_our_machine: bool,
    /// Whether records come while their processes run, so that their memory can be read.
    pub is_now: bool,
}

/// Code that was mapped before records began.
#[derive(Clone, Debug)]
pub struct Mapped {
    /// Its first address.
    pub start: u64,
    /// The end of its range.
    pub end: u64,
    /// Its offset in the file.
    pub offset: u64,
    /// The file.
    pub path: String,
}

/// A process while records come.
#[derive(Default)]
struct Running {
    pid: u32,
    index: u32,
    space: Space,
    jvm: Option<Jvm<Process>>,
    /// The root below which its files are, as far as it was seen.
    root: Option<Root>,
    /// The kernel executes its program, and has not got to its first instruction.
    is_beginning: bool,
    /// Its threads that have samples.
    threads: FxHashMap<u32, ThreadIndex>,
    /// Names of threads, whether they have samples or not.
    names: FxHashMap<u32, String>,
}

/// Samples as they are folded.
#[derive(Clone, Copy)]
struct Sum {
    thread: ThreadIndex,
    stack: Option<mallow_stacks::StackId>,
    totals: CpuTotals,
}

/// Takes records, unwinds samples, folds stacks.
pub struct Folder {
    origin: Origin,
    running: FxHashMap<u32, Running>,
    processes: Vec<CpuProcess>,
    /// The jitdump files of processes, by pid.
    dumps: FxHashMap<u32, String>,
    threads: Vec<CpuThread>,
    shared: Unwinding,
    stacks: StackTable,
    made: MadeCode,
    samples: Vec<CpuSample>,
    sums: FxHashMap<(ThreadIndex, Option<mallow_stacks::StackId>), CpuTotals>,
    waits: Waits,
    pub(crate) scripts: ScriptLogs,
    /// Processes in which an interpreter is mapped, by their index: how many samples they have, and none once script
    /// frames are read there.
    interpreters: FxHashMap<u32, Option<u64>>,
    without_lines: WithoutLines,
    /// The kernel's scheduler functions: every wait begins there.
    scheduler: std::ops::Range<u64>,
    kernel: KernelNames,
    /// Whether a stack had a kernel frame.
    sees_kernel: bool,
    quality: Quality,
    first_ns: Option<u64>,
    last_ns: u64,
    frames: Vec<Place>,
}

/// The results.
#[derive(Clone, Debug)]
pub struct Sampled {
    /// The profile, without names of functions in files.
    pub profile: CpuProfile,
}

impl Folder {
    /// Nothing was recorded yet.
    pub fn new(origin: Origin) -> Folder {
        let quality = Quality { kernel_seen: origin.kernel_seen, ..Quality::default() };
        let has_scheduler = origin.off_cpu && origin.is_our_kernel;
        Folder {
            scheduler: if has_scheduler { scheduler() } else { 0..0 },
            waits: Waits::default(),
            scripts: ScriptLogs::default(),
            interpreters: FxHashMap::default(),
            without_lines: WithoutLines::default(),
            kernel: KernelNames::default(),
            sees_kernel: false,
            origin,
            running: FxHashMap::default(),
            processes: Vec::new(),
            dumps: FxHashMap::default(),
            threads: Vec::new(),
            shared: Unwinding::default(),
            stacks: StackTable::default(),
            made: MadeCode::default(),
            samples: Vec::new(),
            sums: FxHashMap::default(),
            quality,
            first_ns: None,
            last_ns: 0,
            frames: Vec::new(),
        }
    }

    /// Says when the recording began; otherwise it is with the first sample.
    pub fn begin(&mut self, time_ns: u64) {
        self.first_ns = Some(time_ns);
    }

    /// A process that ran before records began.
    pub fn add_process(&mut self, pid: u32, name: &str, threads: &[(u32, String)], mapped: &[Mapped]) {
        let mut running = self.image(pid, name);
        running.names.extend(threads.iter().cloned());
        for Mapped { start, end, offset, path } in mapped {
            self.map(&mut running, *start..*end, *offset, path);
        }
        self.running.insert(pid, running);
    }

    /// Samples that the kernel could not write.
    pub fn lost(&mut self, samples: u64) {
        self.quality.lost = samples;
    }

    /// Names of the kernel's functions will be wanted, where there are such frames.
    pub(crate) fn read_kernel_names_ahead(&mut self) {
        if self.sees_kernel {
            self.kernel.read_ahead();
        }
    }

    /// Takes the thread that can read these.
    pub(crate) fn take_kernel_names(&mut self, names: KernelNames) {
        self.kernel = names;
    }

    /// Samples so far.
    pub fn samples(&self) -> u64 {
        self.quality.samples
    }

    /// A thread is about to leave its CPU; the sample has its stack.
    pub fn waits(&mut self, sample: &SampleRecord<'_>, time_ns: u64) {
        if let Some((thread, stack)) = self.stack_of(sample, time_ns, true) {
            self.waits.stack(sample.tid.unwrap_or(0) as u32, thread, stack, time_ns);
        }
    }

    /// A thread waits while recording begins.
    pub(crate) fn waits_already(&mut self, pid: u32, asleep: &Asleep, time_ns: u64) {
        let (thread, process) = self.thread(pid, asleep.tid);
        let names = self.origin.is_our_kernel.then(|| self.kernel.get());
        let at = |(name, offset): &(String, u64)| Some(names?.address(name)? + offset);
        let kernel: Vec<u64> = asleep.kernel.iter().filter_map(at).collect();
        let registers = Registers { ip: asleep.ip, sp: asleep.sp, bp: 0, di: None, r13: None };
        let mut frames = std::mem::take(&mut self.frames);
        self.quality.samples += 1;
        let end = self.unwound(pid, registers, &asleep.stack, &mut frames);
        self.count(pid, end, &frames);
        let stack = self.folded(process, &frames, &kernel);
        self.frames = frames;
        self.waits.stack(asleep.tid, thread, stack, time_ns);
        self.waits.off(asleep.tid, thread, true, time_ns);
    }

    /// A thread has left its CPU, or runs again.
    pub fn switched(&mut self, record: &ContextSwitchRecord, pid: u32, tid: u32, time_ns: u64) {
        match record {
            ContextSwitchRecord::Out { preempted, .. } => {
                let thread = self.thread(pid, tid).0;
                self.waits.off(tid, thread, *preempted == TaskWasPreempted::No, time_ns);
            }
            ContextSwitchRecord::In { .. } => {
                if let Some(wait) = self.waits.on(tid) {
                    self.waited(wait, time_ns);
                }
            }
        }
    }

    fn waited(&mut self, wait: Wait, until_ns: u64) {
        self.last_ns = self.last_ns.max(until_ns);
        self.add(wait.began_ns, wait.thread, wait.stack, wait.totals(until_ns));
    }

    /// Waits that are not over when the recording ends count until then.
    pub fn end(&mut self, time_ns: u64) {
        for wait in self.waits.rest() {
            self.waited(wait, time_ns);
        }
    }

    /// The next record.
    pub fn record(&mut self, record: &EventRecord<'_>, time_ns: Option<u64>) {
        match record {
            EventRecord::Sample(sample) => self.sample(sample, time_ns.unwrap_or(self.last_ns)),
            EventRecord::Mmap2(map) if map.protection & PROT_EXEC != 0 => {
                let range = map.address..map.address.saturating_add(map.length);
                self.mapped(map.pid as u32, range, map.page_offset, &text(&map.path.as_slice()));
            }
            EventRecord::Mmap(map) if map.pid < 0 => {
                let path = text(&map.path.as_slice());
                let symbol = path.strip_prefix("[kernel.kallsyms]").filter(|_| self.origin.is_our_machine);
                self.origin.is_our_kernel |=
                    symbol.is_some_and(|symbol| is_our_kernel(symbol, map.page_offset));
            }
            EventRecord::Mmap(map) if map.is_executable => {
                let range = map.address..map.address.saturating_add(map.length);
                self.mapped(map.pid as u32, range, map.page_offset, &text(&map.path.as_slice()));
            }
            EventRecord::Comm(comm) => {
                self.comm(comm.pid as u32, comm.tid as u32, &text(&comm.name.as_slice()), comm.is_execve);
            }
            EventRecord::Fork(fork) => {
                self.fork(fork.pid as u32, fork.tid as u32, fork.ppid as u32, fork.ptid as u32)
            }
            EventRecord::Exit(exit) => {
                self.waits.ended(exit.tid as u32);
                if exit.pid == exit.tid {
                    self.running.remove(&(exit.pid as u32));
                }
            }
            _ => {}
        }
    }

    fn image(&mut self, pid: u32, name: &str) -> Running {
        let index = self.processes.len() as u32;
        self.processes.push(CpuProcess { pid, name: name.to_owned(), program: String::new() });
        Running { pid, index, ..Running::default() }
    }

    fn comm(&mut self, pid: u32, tid: u32, name: &str, is_exec: bool) {
        if is_exec {
            let root = self.running.get(&pid).and_then(|running| running.root);
            let mut image = self.image(pid, name);
            (image.is_beginning, image.root) = (true, root);
            self.running.insert(pid, image);
        }
        if let Some(running) = self.running.get_mut(&pid) {
            running.names.insert(tid, name.to_owned());
            if let Some(thread) = running.threads.get(&tid) {
                name.clone_into(&mut self.threads[thread.0 as usize].name);
            }
            if pid == tid {
                name.clone_into(&mut self.processes[running.index as usize].name);
            }
        } else {
            let mut image = self.image(pid, name);
            image.names.insert(tid, name.to_owned());
            self.running.insert(pid, image);
        }
    }

    fn fork(&mut self, pid: u32, tid: u32, parent: u32, parent_thread: u32) {
        let of_parent = self.running.get(&parent);
        let name = of_parent.and_then(|running| running.names.get(&parent_thread)).cloned();
        if pid == parent {
            if let (Some(running), Some(name)) = (self.running.get_mut(&pid), name) {
                running.names.insert(tid, name);
            }
            return;
        }
        let (space, program, jvm, root) = of_parent.map_or_else(Default::default, |running| {
            let jvm = running.jvm.as_ref().map(|jvm| jvm.forked(Process::new(pid)));
            (running.space.clone(), self.processes[running.index as usize].program.clone(), jvm, running.root)
        });
        let mut image = self.image(pid, &name.clone().unwrap_or_default());
        (image.space, image.jvm, image.root) = (space, jvm, root);
        image.names.extend(name.map(|name| (tid, name)));
        self.processes[image.index as usize].program = program;
        self.running.insert(pid, image);
    }

    fn mapped(&mut self, pid: u32, range: std::ops::Range<u64>, offset: u64, path: &str) {
        let mut running = match self.running.remove(&pid) {
            Some(running) => running,
            None => self.image(pid, ""),
        };
        self.map(&mut running, range, offset, path);
        self.running.insert(pid, running);
    }

    fn map(&mut self, running: &mut Running, range: std::ops::Range<u64>, offset: u64, path: &str) {
        if jitdump::is_one(path) {
            self.dumps.insert(running.index, path.to_owned());
            return;
        }
        if is_interpreter(path) {
            self.interpreters.entry(running.index).or_insert(Some(0));
        }
        let process = &mut self.processes[running.index as usize];
        if process.program.is_empty() && path.starts_with('/') && !path.starts_with("//") {
            path.clone_into(&mut process.program);
        }
        if self.origin.is_now {
            // A process may change its root while it runs. One that has ended since had the one that it was seen with last.
            running.root = roots::hold(running.pid, || false).or(running.root);
        }
        let place = (running.root.unwrap_or(Root::Own), path);
        let exports = running.space.map(range, offset, place, &mut self.shared);
        if let Some(exports) = exports.filter(|_| self.origin.is_now) {
            running.jvm.get_or_insert_with(|| Jvm::new(exports, Process::new(running.pid)));
        }
    }

    fn thread(&mut self, pid: u32, tid: u32) -> (ThreadIndex, u32) {
        if !self.running.contains_key(&pid) {
            let image = self.image(pid, "");
            self.running.insert(pid, image);
        }
        let running = self.running.entry(pid).or_default();
        let index = *running.threads.entry(tid).or_insert_with(|| {
            let name = running.names.get(&tid).cloned().unwrap_or_default();
            self.threads.push(CpuThread { process: ProcessIndex(running.index), tid, name });
            ThreadIndex(self.threads.len() as u32 - 1)
        });
        (index, running.index)
    }

    fn sample(&mut self, sample: &SampleRecord<'_>, time_ns: u64) {
        let Some((thread, stack)) = self.stack_of(sample, time_ns, false) else { return };
        let period = sample.period.unwrap_or(0);
        self.add(time_ns, thread, stack, self.totals_of(period));
    }

    fn totals_of(&self, period: u64) -> CpuTotals {
        CpuTotals {
            samples: 1,
            time_ns: if self.origin.is_time { period } else { 0 },
            events: if self.origin.is_time { 0 } else { period },
            ..CpuTotals::default()
        }
    }

    fn add(
        &mut self,
        time_ns: u64,
        thread: ThreadIndex,
        stack: Option<mallow_stacks::StackId>,
        totals: CpuTotals,
    ) {
        let first = self.first_ns.unwrap_or(time_ns);
        if self.origin.summary_only {
            mallow_stacks::Weights::add(self.sums.entry((thread, stack)).or_default(), &totals);
        } else {
            self.samples.push(CpuSample { time_ns: time_ns.saturating_sub(first), thread, stack, totals });
        }
    }

    /// The thread and the stack of a sample; none if no process was there.
    fn stack_of(
        &mut self,
        sample: &SampleRecord<'_>,
        time_ns: u64,
        is_wait: bool,
    ) -> Option<(ThreadIndex, Option<mallow_stacks::StackId>)> {
        let (thread, process, kernel) = self.unwound_sample(sample, time_ns)?;
        // The scheduler's frames are the same for all waits.
        let inside = kernel.iter().take_while(|address| is_wait && self.scheduler.contains(&(**address - 1)));
        let kernel = &kernel[inside.count()..];
        let frames = std::mem::take(&mut self.frames);
        let stack = self.folded(process, &frames, kernel);
        self.frames = frames;
        Some((thread, stack))
    }

    /// The thread, the process and the kernel's frames of a sample, whose other frames are in `self.frames` then; none if no process was there.
    fn unwound_sample(
        &mut self,
        sample: &SampleRecord<'_>,
        time_ns: u64,
    ) -> Option<(ThreadIndex, u32, Vec<u64>)> {
        let (pid, tid) = (sample.pid.unwrap_or(0) as u32, sample.tid.unwrap_or(0) as u32);
        if pid == 0 {
            return None;
        }
        self.first_ns.get_or_insert(time_ns);
        self.last_ns = self.last_ns.max(time_ns);
        let (thread, process) = self.thread(pid, tid);
        self.quality.samples += 1;
        if let Some(Some(samples)) = self.interpreters.get_mut(&process) {
            *samples += 1;
        }
        let (kernel, chain) = chain_of(sample);
        self.sees_kernel |= !kernel.is_empty();
        let mut frames = std::mem::take(&mut self.frames);
        frames.clear();
        self.user_frames(pid, sample, &chain, &mut frames);
        self.frames = frames;
        Some((thread, process, kernel))
    }

    /// The program's frames, innermost first.
    fn user_frames(&mut self, pid: u32, sample: &SampleRecord<'_>, chain: &[u64], frames: &mut Vec<Place>) {
        let registers = sample.user_regs.as_ref().and_then(|regs| {
            let get = |register| regs.get(register);
            Some(Registers {
                ip: get(PERF_REG_X86_IP)?,
                sp: get(PERF_REG_X86_SP)?,
                bp: get(PERF_REG_X86_BP)?,
                di: get(PERF_REG_X86_DI),
                r13: get(PERF_REG_X86_R13),
            })
        });
        let Some(running) = self.running.get_mut(&pid) else { return };
        // An `exec` unmaps the old program before its record.
        let has_stack = sample.user_stack.as_ref().is_none_or(|(_, used)| *used > 0);
        let is_inside =
            has_stack && registers.as_ref().is_some_and(|registers| running.space.has(registers.ip));
        // Until the kernel has the new program begin, the registers are those of the old one, whose memory is gone.
        let is_between = sample.cpu_mode == CpuMode::Kernel && !is_inside;
        running.is_beginning &= is_between;
        if running.is_beginning || (is_between && !has_stack) {
            self.quality.kernel_only += 1;
            return;
        }
        match (registers, &sample.user_stack) {
            (Some(registers), Some((stack, used))) => {
                let used = usize::try_from(*used).unwrap_or(usize::MAX).min(stack.len());
                let bytes = stack.as_slice();
                let end = self.unwound(pid, registers, bytes.get(..used).unwrap_or_default(), frames);
                self.count(pid, end, frames);
            }
            _ if chain.is_empty() => self.quality.kernel_only += 1,
            _ => {
                let end = running.space.chain(chain, &mut self.shared, frames);
                self.count(pid, end, frames);
            }
        }
    }

    fn unwound(&mut self, pid: u32, registers: Registers, stack: &[u8], frames: &mut Vec<Place>) -> End {
        frames.clear();
        let Some(running) = self.running.get_mut(&pid) else { return End::Truncated };
        let (stack_bytes, shared) = (self.origin.stack_bytes, &mut self.shared);
        if let Some(jvm) = &mut running.jvm {
            jvm.begin(self.last_ns);
        }
        running.space.unwind(registers, stack, stack_bytes, running.jvm.as_mut(), shared, frames)
    }

    fn count(&mut self, pid: u32, end: End, frames: &[Place]) {
        self.count_without_lines(pid, frames);
        match end {
            End::Whole => self.quality.whole += 1,
            End::TooDeep => self.quality.too_deep += 1,
            End::Truncated => {}
        }
    }

    /// The profile. Samples are in the order of time.
    pub fn finish(mut self, command: Vec<String>, started_unix_ns: u64, duration_ns: Option<u64>) -> Sampled {
        let first = self.first_ns.unwrap_or(0);
        let names = Names {
            processes: &self.processes,
            dumps: &self.dumps,
            is_our_kernel: self.origin.is_our_kernel,
            is_our_machine: self.origin.is_our_machine,
            script_frames: &self.shared.script_frames,
            made: &self.made,
        };
        let mut kept = FxHashMap::default();
        let mut kernel = self.kernel;
        let stacks = self.stacks.finish(&self.shared.files, |place| names.of(place, &mut kept, &mut kernel));
        let known = CpuAvailability {
            samples: true,
            time: self.origin.is_time,
            events: !self.origin.is_time,
            off_cpu: self.origin.off_cpu,
            blocked: self.origin.off_cpu,
            switches: self.origin.off_cpu,
        };
        // A wait is recorded when it is over, and has the time of its beginning.
        self.samples.sort_by_key(|sample| sample.time_ns);
        let sums: Vec<Sum> =
            self.sums.into_iter().map(|((thread, stack), totals)| Sum { thread, stack, totals }).collect();
        let mut profile = CpuProfile {
            recording: CpuRecording {
                command,
                started_unix_ns,
                duration_ns: duration_ns.unwrap_or_else(|| self.last_ns.saturating_sub(first)),
                event: self.origin.event,
                frequency_hz: self.origin.frequency_hz,
            },
            processes: self.processes,
            threads: self.threads,
            stacks,
            sites: Vec::new(),
            samples: self.samples,
            known,
            quality: Some(self.quality),
        };
        profile.sites =
            if sums.is_empty() { profile.sums(profile.samples.iter()) } else { of_sums(&profile, sums) };
        Sampled { profile: without_idle(profile) }
    }
}

fn of_sums(profile: &CpuProfile, mut sums: Vec<Sum>) -> Vec<mallow_stacks::Site<CpuTotals>> {
    sums.sort_by_key(|sum| (sum.thread, sum.stack));
    let as_samples =
        sums.into_iter().map(|Sum { thread, stack, totals }| CpuSample { time_ns: 0, thread, stack, totals });
    let samples: Vec<CpuSample> = as_samples.collect();
    profile.sums(samples.iter())
}

/// Leaves out processes that have no sample.
fn without_idle(mut profile: CpuProfile) -> CpuProfile {
    let mut numbers = vec![None; profile.processes.len()];
    profile.threads.iter().for_each(|thread| numbers[thread.process.0 as usize] = Some(0));
    numbers.iter_mut().flatten().zip(0..).for_each(|(number, next)| *number = next);
    let mut at = numbers.iter();
    profile.processes.retain(|_| at.next().is_some_and(Option::is_some));
    let renumber = |process: &mut ProcessIndex| {
        process.0 = numbers.get(process.0 as usize).copied().flatten().unwrap_or_default();
    };
    profile.threads.iter_mut().for_each(|thread| renumber(&mut thread.process));
    profile.sites.iter_mut().for_each(|site| renumber(&mut site.process));
    profile
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
