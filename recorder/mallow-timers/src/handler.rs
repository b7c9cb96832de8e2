//! What happens when a timer expires, or an event of the kernel's has made a sample.

use crate::ids;
use crate::kernel;
use crate::memory::memory;
use crate::scripts;
use crate::signals::{self, Context};
use crate::threads::{self, Entry};
use core::arch::asm;
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;
use mallow_recorder::sys;
use mallow_wire::timers::{HAS_SCRIPT, IS_LATE, Note, SAMPLE};

/// The part of `siginfo_t` that timers have.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Info {
    signal: c_int,
    error: c_int,
    code: c_int,
    pad: c_int,
    timer: c_int,
    overrun: c_int,
    value: usize,
    /// Of an event.
    kind: u32,
    event_flags: u32,
}

const R10: usize = 7;
const R13: usize = 10;
const RDI: usize = 13;
const RBP: usize = 15;
const RAX: usize = 18;
const RSP: usize = 20;
const RIP: usize = 21;

/// A signal that comes so many ticks after the last one was held back. A virtual machine may lose some.
const LATE_TICKS: u64 = 10;

/// In the code of a signal that an event sends.
pub(crate) const SI_EVENT: c_int = 6;

/// An event has made a sample: what the thread runs has not moved since, unless it had blocked the signal.
fn event(info: &Info, registers: &Context) {
    const WAS_BLOCKED: u32 = 1;
    let Some(memory) = memory() else { return };
    if memory.is_over() {
        return;
    }
    let flags = if info.event_flags & WAS_BLOCKED != 0 { IS_LATE } else { 0 };
    let note = Note {
        pid: ids::pid(),
        time_ns: sys::monotonic_ns(),
        ip: registers[RIP],
        sp: registers[RSP],
        flags,
        ..Note::default()
    };
    scripts::leave(memory, ids::tid(), note);
}

/// The handler. Every other signal is blocked meanwhile.
pub(crate) unsafe extern "C" fn on_signal(signal: c_int, info: *mut Info, context: *mut Context) {
    const SI_TIMER: c_int = -2;
    // SAFETY: the kernel gives both.
    let (given, registers) = unsafe { (&*info, &*context) };
    if given.code == SI_EVENT {
        return event(given, registers);
    }
    let entry = if given.code == SI_TIMER { threads::of_value(given.value) } else { None };
    match entry {
        Some(entry) => sample(entry, registers),
        // SAFETY: what the kernel gave us is handed on.
        None => unsafe { signals::pass_on(signal, info.cast::<c_void>(), context) },
    }
}

/// Returns whether code is our library's.
fn is_ours(ip: usize) -> bool {
    let (start, end): (usize, usize);
    // SAFETY: two addresses, which the linker defines in each library. They are this one's where they are hidden.
    unsafe {
        asm!(
            ".hidden __ehdr_start",
            ".hidden _end",
            "lea {}, [rip + __ehdr_start]",
            "lea {}, [rip + _end]",
            out(reg) start,
            out(reg) end,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    (start..end).contains(&ip)
}

fn sample(entry: &Entry, registers: &Context) {
    let Some(memory) = memory() else { return };
    if memory.is_over() {
        return entry.stop();
    }
    // A tick that was held back while the timer was made comes before the program goes on. The next sample has its time.
    if is_ours(registers[RIP] as usize) {
        return;
    }
    let Some(slot) = memory.claim(entry.seen_tid()) else { return memory.count(|header| &header.lost) };
    let pid = sys::getpid();
    let now_ns = kernel::thread_cpu_ns();
    // A thread's first tick meets it by chance: short threads that are met stand for those that are not, long ones for their ends.
    let least_ns = if entry.is_met.swap(true, Ordering::Relaxed) { 0 } else { memory.tick_ns() };
    let passed_ns = now_ns.wrapping_sub(entry.last_ns.swap(now_ns, Ordering::Relaxed)).max(least_ns);
    // No timer expires more often than the kernel's clock ticks.
    let usual_ns = memory.period_ns().max(memory.tick_ns());
    let is_late = passed_ns > usual_ns.saturating_mul(LATE_TICKS) && !is_behind_call(pid, registers);
    if is_late {
        memory.count(|header| &header.late);
    }
    let (sp, time_ns) = (registers[RSP], sys::monotonic_ns());
    let seen = ids::pid();
    let script = Note { pid: seen, time_ns, ip: registers[RIP], sp, ..Note::default() };
    let has_script = scripts::leave(memory, entry.seen_tid(), script);
    let (into, room) = slot.room();
    // SAFETY: the slot has so much room.
    let bytes = unsafe { kernel::copy_mapped(pid, sp as usize, into, room) };
    slot.publish(Note {
        kind: SAMPLE,
        pid: seen,
        time_ns,
        flags: if has_script { HAS_SCRIPT } else { 0 },
        // Where the rest of the time went nobody knows.
        cpu_ns: if is_late { usual_ns } else { passed_ns },
        ip: registers[RIP],
        sp,
        bp: registers[RBP],
        di: registers[RDI],
        r13: registers[R13],
        bytes: bytes as u32,
        name: kernel::thread_name(),
        ..Note::default()
    });
}

/// Returns whether the thread comes back from the kernel, where no signal is taken and all the time went that passed. The call that lets signals
/// through again is none of these.
fn is_behind_call(pid: u32, registers: &Context) -> bool {
    const SYSCALL: usize = 0x050f;
    const HOW_MAX: u64 = 2;
    const SET_BYTES: u64 = 8;
    let before = (registers[RIP] as usize).wrapping_sub(size_of::<usize>());
    let is_call = sys::read_word_checked(pid, before).is_some_and(|word| word >> 48 == SYSCALL);
    let is_unblocking = registers[RAX] == 0 && registers[R10] == SET_BYTES && registers[RDI] <= HOW_MAX;
    is_call && !is_unblocking
}
