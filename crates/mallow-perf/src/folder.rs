//! Records in, a profile out.
//!
//! Records must come in the order of time. A process's code is what was mapped when the sample was taken; a `fork` hands it on, an
//! `exec` throws it away.

mod chain;
mod finished;
mod folded;
mod java;
mod names;
mod processes;
mod scripted;
mod timed;
mod unwound;
mod waited;

use java::WithoutLines;
pub(crate) use scripted::Unfinished;

use crate::kernel_names::{KernelNames, is_our_kernel, scheduler};
use crate::made_code::MadeCode;
use crate::scripts::ScriptLogs;
use crate::spaces::{Place, Space, Unwinding};
use crate::stack_table::StackTable;
use crate::waits::Waits;
use linux_perf_event_reader::{EventRecord, SampleRecord};
use mallow_cpu::{CpuProcess, CpuProfile, CpuSample, CpuThread, CpuTotals, Quality, ThreadIndex};
use mallow_files::roots::Root;
use mallow_jvm::{Jvm, Process};
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
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
