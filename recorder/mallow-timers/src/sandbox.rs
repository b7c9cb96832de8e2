//! The moment before a thread locks itself in: a filter of system calls kills who makes one that it does not list, and ours are not on anybody's
//! list. So all timers of the process end before, whichever thread it is.

use crate::memory::memory;
use crate::threads;
use mallow_recorder::export_before;
use mallow_recorder::real::Real;
use mallow_recorder::sandbox::{Door, of_prctl, of_syscall};

static PRCTL: Real = Real::named(c"prctl");
static SYSCALL: Real = Real::named(c"syscall");

export_before!(prctl => before_prctl);
export_before!(syscall => before_syscall);

extern "C" fn before_prctl(option: u64, value: u64, pointer: u64) -> usize {
    prepare(of_prctl(option, value, pointer));
    PRCTL.address()
}

extern "C" fn before_syscall(number: u64, first: u64, second: u64, third: u64) -> usize {
    prepare(of_syscall(number, first, second, third));
    SYSCALL.address()
}

fn prepare(door: Door) {
    if door == Door::Open {
        return;
    }
    if let Some(memory) = memory().filter(|_| threads::is_open()) {
        memory.count(|header| &header.processes_filtered);
        threads::close();
    }
}
