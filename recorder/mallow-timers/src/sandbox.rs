//! The moment before a thread locks itself in: a filter of system calls kills who makes one that it does not list, and ours are not on anybody's
//! list. So all timers of the process end before, whichever thread it is, and so do events that send signals.

use crate::memory::memory;
use crate::{execs, threads};
use mallow_recorder::real::Real;
use mallow_recorder::sandbox::{Restriction, of_prctl, of_syscall};
use mallow_recorder::{export_before, process};
use mallow_wire::timers::BY_EVENTS;

static PRCTL: Real = Real::named(c"prctl");
static SYSCALL: Real = Real::named(c"syscall");

export_before!(prctl => before_prctl);
export_before!(syscall => before_syscall);

extern "C" fn before_prctl(option: u64, value: u64, pointer: u64, fourth: u64) -> usize {
    prepare(of_prctl(option, value, pointer, fourth));
    PRCTL.address()
}

extern "C" fn before_syscall(number: u64, first: u64, second: u64, third: u64) -> usize {
    const EXECVE: u64 = 59;
    const EXECVEAT: u64 = 322;
    if [EXECVE, EXECVEAT].contains(&number) {
        execs::end_events();
    }
    prepare(of_syscall(number, first, second, third));
    SYSCALL.address()
}

fn prepare(restriction: Restriction) {
    if !matches!(restriction, Restriction::Filtered(_) | Restriction::Closed | Restriction::Dispatched) {
        return;
    }
    // What a function that starts a program would look up behind the filter.
    execs::find_real();
    process::note_filter();
    let Some(memory) = memory() else { return };
    match memory.way() {
        BY_EVENTS => _ = execs::end_events(),
        _ if threads::is_open() => {
            memory.count(|header| &header.processes_filtered);
            threads::close();
        }
        _ => {}
    }
}
