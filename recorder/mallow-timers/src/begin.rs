//! New processes: those that execute a program, and those that are forked.

use crate::handler::on_signal;
use crate::memory::{self, Memory};
use crate::{execs, ids, kernel, regions, signals, threads};
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use mallow_recorder::filters::status_number;
use mallow_recorder::real::Real;
use mallow_recorder::script::{self, sampled};
use mallow_recorder::{process, sys};
use mallow_wire::timers::{BEGINS, BY_EVENTS, BY_TIMERS, FORKED, MORE, Note};

/// Glibc's, which also says whose handlers they are.
static REGISTER_ATFORK: Real = Real::named(c"__register_atfork");
static PTHREAD_ATFORK: Real = Real::named(c"pthread_atfork");

type Hook = Option<extern "C" fn()>;

/// The program begins.
pub(crate) extern "C" fn begin() {
    // Before any call that the loader does not make, too: a filter was not asked about ours, which could end the program.
    // The kernel tells their number from 5.10 on.
    let filters = status_number("Seccomp_filters").unwrap_or(0);
    if filters > 0
        && let Some(memory) = memory::open_if_needed()
        && filters > memory.filters()
    {
        process::note_filter();
        if memory.way() == BY_TIMERS || script::meet_loaded() {
            memory.count(|header| &header.processes_filtered);
        }
        return threads::close();
    }
    let has_script = script::meet_loaded();
    let Some(memory) = memory::open(|way| way == BY_TIMERS || has_script) else { return };
    ids::find_out();
    let signal = signals::choose(memory.way());
    match kernel::handle(signal, on_signal as *const () as usize) {
        Some((handler, flags, mask)) => signals::found(handler, flags, mask),
        None => return,
    }
    watch_forks();
    execs::find_real();
    begin_script(memory, has_script);
    if memory.way() == BY_TIMERS {
        run(memory, BEGINS);
    }
}

/// A runtime whose frames are not read says so in a region, and no more.
fn begin_script(memory: Memory, has_script: bool) {
    if has_script && regions::take(memory) && sampled::is_wanted() && memory.way() == BY_EVENTS {
        kernel::unblock(signals::ours());
        regions::ask_for_events(memory);
    }
}

fn watch_forks() {
    type Register = unsafe extern "C" fn(Hook, Hook, Hook, *const c_void) -> c_int;
    let address = match REGISTER_ATFORK.address() {
        0 => PTHREAD_ATFORK.address(),
        address => address,
    };
    if address != 0 {
        // SAFETY: musl's takes the first three; nobody unloads this library.
        unsafe { transmute::<usize, Register>(address)(None, None, Some(forked), core::ptr::null()) };
    }
}

/// In a forked child, by its only thread.
extern "C" fn forked() {
    threads::forget();
    let Some(memory) = memory::memory().filter(|memory| !memory.is_over()) else { return };
    begin_script(memory, sampled::is_wanted());
    if memory.way() == BY_TIMERS {
        run(memory, FORKED);
    }
}

fn run(memory: Memory, kind: u32) {
    let Some(entry) = threads::claim() else { return };
    tell_mappings(memory, kind);
    entry.begin(memory);
}

/// Leaves what is mapped here in slots, as the kernel says it: when somebody reads it this process may have ended.
fn tell_mappings(memory: Memory, kind: u32) {
    let file = sys::open_read(c"/proc/self/maps");
    let (pid, tid) = (ids::pid(), ids::tid());
    let mut kind = kind;
    while let Some(slot) = memory.claim(tid) {
        let (into, room) = slot.room();
        // SAFETY: the slot is ours until it is published.
        let room = unsafe { core::slice::from_raw_parts_mut(into, room) };
        let mut filled = 0;
        let is_end = loop {
            let rest = room.get_mut(filled..).unwrap_or(&mut []);
            if rest.is_empty() {
                break false;
            }
            match sys::read(file as i32, rest) {
                bytes if bytes > 0 => filled += bytes as usize,
                _ => break true,
            }
        };
        let note = Note {
            kind,
            pid,
            time_ns: sys::monotonic_ns(),
            bytes: filled as u32,
            name: kernel::thread_name(),
            ..Note::default()
        };
        slot.publish(note);
        kind = MORE;
        if is_end {
            break;
        }
    }
    if file >= 0 {
        sys::close(file as i32);
    }
}
