//! What happens when a timer expires.

use crate::kernel;
use crate::memory::memory;
use crate::signals::{self, Context};
use crate::threads::{self, Entry};
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering;
use mallow_recorder::sys;
use mallow_wire::timers::{Note, SAMPLE};

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
}

const R10: usize = 7;
const RDI: usize = 13;
const RBP: usize = 15;
const RAX: usize = 18;
const RSP: usize = 20;
const RIP: usize = 21;

/// A signal that comes so many ticks after the last one was held back. A virtual machine may lose some.
const LATE_TICKS: u64 = 10;

/// The handler. Every other signal is blocked meanwhile.
pub(crate) unsafe extern "C" fn on_signal(signal: c_int, info: *mut Info, context: *mut Context) {
    const SI_TIMER: c_int = -2;
    // SAFETY: the kernel gives both.
    let (given, registers) = unsafe { (&*info, &*context) };
    let entry = if given.code == SI_TIMER { threads::of_value(given.value) } else { None };
    match entry {
        Some(entry) => sample(entry, registers),
        // SAFETY: what the kernel gave us is handed on.
        None => unsafe { signals::pass_on(signal, info.cast::<c_void>(), context) },
    }
}

fn sample(entry: &Entry, registers: &Context) {
    let Some(memory) = memory() else { return };
    if memory.is_over() {
        return entry.stop();
    }
    let Some(slot) = memory.claim(entry.tid()) else { return memory.count(|header| &header.lost) };
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
    let sp = registers[RSP];
    let (into, room) = slot.room();
    // SAFETY: the slot has so much room.
    let bytes = unsafe { kernel::copy_mapped(pid, sp as usize, into, room) };
    slot.publish(Note {
        kind: SAMPLE,
        pid,
        time_ns: sys::monotonic_ns(),
        // Where the rest of the time went nobody knows.
        cpu_ns: if is_late { usual_ns } else { passed_ns },
        ip: registers[RIP],
        sp,
        bp: registers[RBP],
        di: registers[RDI],
        bytes: bytes as u32,
        name: kernel::thread_name(),
        ..Note::default()
    });
}

/// Whether the thread comes back from the kernel, where no signal is taken and all the time went that passed. The call that lets signals
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
