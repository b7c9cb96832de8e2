//! The events: what makes samples, what a sample holds, and which records come beside them.

use crate::error::{PerfError, hidden, refused};
use linux_perf_event_reader::{
    BranchSampleFormat, Endianness, ReadFormat, RecordIdParseInfo, RecordParseInfo, SampleFormat,
};
use mallow_counters::Event as Counted;
use perf_event_open_sys as sys;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use sys::bindings::{self, perf_event_attr};

/// Registers that unwinding begins with, by the kernel's numbers: the one in which `vfork` keeps its return address, frame pointer, stack
/// pointer, instruction pointer; and the one in which a JVM's interpreter has its bytecode.
const REGISTERS: u64 = 1 << 5 | 1 << 6 | 1 << 7 | 1 << 8 | 1 << 21;
/// The fields of a sample, in the kernel's names.
const SAMPLE: u64 = (bindings::PERF_SAMPLE_IDENTIFIER
    | bindings::PERF_SAMPLE_IP
    | bindings::PERF_SAMPLE_TID
    | bindings::PERF_SAMPLE_TIME
    | bindings::PERF_SAMPLE_PERIOD
    | bindings::PERF_SAMPLE_REGS_USER
    | bindings::PERF_SAMPLE_STACK_USER) as u64;

/// The default events: cycles if the processor counts them, otherwise the kernel's timer, as in most virtual
/// machines.
const USUAL: [&str; 2] = ["cycles", "cpu-clock"];

/// The sampling rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rate {
    /// So often in a second of a processor.
    Hz(u64),
    /// After so many events.
    Every(u64),
}

/// The requested events.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The event that triggers samples; `None` for the default.
    pub(crate) event: Option<Counted>,
    pub(crate) rate: Rate,
    pub(crate) stack_bytes: u32,
    /// Whether context switches are recorded.
    pub(crate) off_cpu: bool,
    /// Sampling begins when the process executes a program.
    pub(crate) on_exec: bool,
    /// A reader is woken when so many bytes wait.
    pub(crate) wake_bytes: u32,
}

/// The events that the kernel granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    pub(crate) event: Counted,
    pub(crate) kernel_seen: bool,
}

/// The purpose of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// CPU time.
    Samples,
    /// Leaving a CPU, with a stack.
    Waits,
    /// Leaving and getting a CPU: records without stacks.
    Switches,
}

impl Purpose {
    /// All, in the order in which records of one moment are processed.
    pub(crate) const ALL: [Purpose; 3] = [Purpose::Samples, Purpose::Waits, Purpose::Switches];
}

/// An event of one processor.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) file: OwnedFd,
    pub(crate) purpose: Purpose,
}

fn attributes(wanted: &Wanted, granted: &Granted, purpose: Purpose) -> perf_event_attr {
    let mut attr = perf_event_attr { size: size_of::<perf_event_attr>() as u32, ..Default::default() };
    match purpose {
        Purpose::Samples => {
            (attr.type_, attr.config) = granted.event.kind_and_config();
            match wanted.rate {
                Rate::Hz(hz) => {
                    attr.set_freq(1);
                    attr.__bindgen_anon_1.sample_freq = hz;
                }
                Rate::Every(events) => attr.__bindgen_anon_1.sample_period = events,
            }
            attr.set_exclude_user(u64::from(granted.event.is_kernel_only()));
            attr.set_mmap(1);
            attr.set_mmap2(1);
            attr.set_comm(1);
            attr.set_comm_exec(1);
            attr.set_task(1);
        }
        Purpose::Waits => {
            attr.type_ = bindings::PERF_TYPE_SOFTWARE;
            attr.config = u64::from(bindings::PERF_COUNT_SW_CONTEXT_SWITCHES);
            attr.__bindgen_anon_1.sample_period = 1;
        }
        Purpose::Switches => {
            attr.type_ = bindings::PERF_TYPE_SOFTWARE;
            attr.config = u64::from(bindings::PERF_COUNT_SW_DUMMY);
            attr.set_context_switch(1);
        }
    }
    attr.sample_type = SAMPLE;
    attr.sample_regs_user = REGISTERS;
    attr.sample_stack_user = wanted.stack_bytes;
    attr.read_format = u64::from(bindings::PERF_FORMAT_LOST);
    if granted.kernel_seen {
        attr.sample_type |= bindings::PERF_SAMPLE_CALLCHAIN as u64;
        // The program's frames are unwound here, and its frame pointers are mostly none.
        attr.set_exclude_callchain_user(1);
    }
    let is_program_only = purpose == Purpose::Samples && granted.event.is_user_only();
    attr.set_exclude_kernel(u64::from(!granted.kernel_seen || is_program_only));
    attr.set_exclude_hv(1);
    attr.set_disabled(1);
    attr.set_enable_on_exec(u64::from(wanted.on_exec));
    attr.set_inherit(1);
    // Each record has its time, by which those of all processors are merged, on the clock that we can read.
    attr.set_sample_id_all(1);
    attr.set_use_clockid(1);
    attr.clockid = rustix::time::ClockId::Monotonic as i32;
    attr.set_watermark(1);
    attr.__bindgen_anon_2.wakeup_watermark = wanted.wake_bytes;
    attr
}

/// Returns how records of these events are parsed: a sample begins with its event, address, process and thread, and
/// time; other records end with process and thread, time and event.
pub(crate) fn parse_info(granted: &Granted) -> RecordParseInfo {
    let chain = if granted.kernel_seen { SampleFormat::CALLCHAIN } else { SampleFormat::empty() };
    RecordParseInfo {
        endian: Endianness::NATIVE,
        sample_format: SampleFormat::from_bits_truncate(SAMPLE) | chain,
        branch_sample_format: BranchSampleFormat::empty(),
        read_format: ReadFormat::empty(),
        common_data_offset_from_end: Some(24),
        sample_regs_user: REGISTERS,
        user_regs_count: REGISTERS.count_ones() as u8,
        sample_regs_intr: 0,
        intr_regs_count: 0,
        id_parse_info: RecordIdParseInfo {
            nonsample_record_id_offset_from_end: Some(8),
            sample_record_id_offset_from_start: Some(0),
        },
        nonsample_record_time_offset_from_end: Some(16),
        sample_record_time_offset_from_start: Some(24),
    }
}

/// Opens an event for a thread on a processor.
pub(crate) fn open(
    wanted: &Wanted,
    granted: &Granted,
    purpose: Purpose,
    thread: i32,
    processor: i32,
) -> io::Result<Event> {
    opened(&mut attributes(wanted, granted, purpose), purpose, thread, processor)
}

fn opened(attr: &mut perf_event_attr, purpose: Purpose, thread: i32, processor: i32) -> io::Result<Event> {
    let flags = u64::from(bindings::PERF_FLAG_FD_CLOEXEC);
    // SAFETY: `attr` is a whole structure of the size that it states, and the kernel checks what it asks for.
    let file = unsafe { sys::perf_event_open(attr, thread, processor, -1, flags) };
    if file < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given us this descriptor, and nobody else has it.
    Ok(Event { file: unsafe { OwnedFd::from_raw_fd(file) }, purpose })
}

/// Opens an event with a signal for a process that handles it, and for all of its later threads. It takes samples
/// only; no other program inherits it.
pub(crate) fn open_with_signal(
    wanted: &Wanted,
    granted: &Granted,
    pid: i32,
    processor: i32,
) -> io::Result<Event> {
    let mut attr = attributes(wanted, granted, Purpose::Samples);
    attr.set_mmap(0);
    attr.set_mmap2(0);
    attr.set_comm(0);
    attr.set_comm_exec(0);
    attr.set_task(0);
    attr.set_enable_on_exec(0);
    attr.set_remove_on_exec(1);
    attr.set_inherit_thread(1);
    attr.set_sigtrap(1);
    opened(&mut attr, Purpose::Samples, pid, processor)
}

impl Event {
    /// Begins or stops to sample.
    pub(crate) fn enable(&self, on: bool) -> io::Result<()> {
        let file = self.file.as_raw_fd();
        // SAFETY: the descriptor is that of an event as long as `self` lives; neither call takes memory of ours.
        let result = unsafe { if on { sys::ioctls::ENABLE(file, 0) } else { sys::ioctls::DISABLE(file, 0) } };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Its number, with which its samples begin, and those of events that were inherited from it.
    pub(crate) fn id(&self) -> io::Result<u64> {
        let mut id = 0_u64;
        // SAFETY: the descriptor is that of an event as long as `self` lives; the call writes one word, which is ours.
        let result = unsafe { sys::ioctls::ID(self.file.as_raw_fd(), &raw mut id) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(id) }
    }

    /// Has its records written into another event's ring.
    pub(crate) fn write_to_ring_of(&self, other: &Event) -> io::Result<()> {
        // SAFETY: both descriptors are those of events as long as the borrows last; the call takes no memory of ours.
        let result = unsafe { sys::ioctls::SET_OUTPUT(self.file.as_raw_fd(), other.file.as_raw_fd()) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Records that did not fit into the ring, those of children included. Kernels before 6.0 do not say.
    pub(crate) fn lost(&self) -> u64 {
        let mut words = [0; 16];
        match rustix::io::read(&self.file, &mut words) {
            Ok(16) => u64::from_ne_bytes(words[8..].try_into().unwrap_or_default()),
            _ => 0,
        }
    }
}

/// Finds out what the kernel grants, by trying: hardware before the timer, with the kernel before without.
pub(crate) fn grant(wanted: &Wanted, thread: i32, pid: Option<u32>) -> Result<Granted, PerfError> {
    let usual = || USUAL.iter().filter_map(|name| Counted::named(name).ok()).collect();
    let events = wanted.event.clone().map_or_else(usual, |event| vec![event]);
    let mut last = None;
    for event in events {
        for kernel_seen in [true, false] {
            if !kernel_seen && event.is_kernel_only() {
                continue;
            }
            let granted = Granted { event: event.clone(), kernel_seen };
            match open(wanted, &granted, Purpose::Samples, thread, -1) {
                Ok(_) if !kernel_seen && event.is_of_scheduler() => return Err(hidden(event.name())),
                Ok(_) => return may_see_waits(wanted, granted, thread),
                Err(error) => last = Some(error),
            }
        }
    }
    let last = last.unwrap_or_else(io::Error::last_os_error);
    Err(refused(&last, pid, wanted.event.as_ref()))
}

/// Threads leave CPUs in the kernel.
fn may_see_waits(wanted: &Wanted, granted: Granted, thread: i32) -> Result<Granted, PerfError> {
    let is_seen = || granted.kernel_seen && open(wanted, &granted, Purpose::Waits, thread, -1).is_ok();
    if wanted.off_cpu && !is_seen() {
        return Err(hidden("what threads wait for"));
    }
    Ok(granted)
}
