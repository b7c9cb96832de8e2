//! Who has a timer: a table of this process's threads, without a lock.
//!
//! A thread that ends says nothing, as libraries' destructors may still run in it. Its entry is found when there are twice as many as when they
//! were last looked through, and then its timer is given back.

use crate::ids;
use crate::kernel;
use crate::memory::Memory;
use crate::signals;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use mallow_recorder::sys;

/// More threads at once than any program has that was met; those beyond have no timer, which is counted.
const ENTRIES: usize = 16_384;
/// So few are never looked through.
const FEW: usize = 64;

const FREE: u32 = 0;
/// Somebody fills it or empties it.
const BUSY: u32 = 1;
const LIVE: u32 = 2;

/// A thread with a timer.
#[derive(Debug)]
pub(crate) struct Entry {
    state: AtomicU32,
    tid: AtomicU32,
    /// The same as mallow has it.
    seen_tid: AtomicU32,
    timer: AtomicU32,
    /// The time on processors at its last sample.
    pub(crate) last_ns: AtomicU64,
    /// It has a sample.
    pub(crate) is_met: AtomicBool,
    /// What it begins with, and its argument.
    pub(crate) start: AtomicUsize,
    pub(crate) argument: AtomicUsize,
}

static TABLE: [Entry; ENTRIES] = [const {
    Entry {
        state: AtomicU32::new(FREE),
        tid: AtomicU32::new(0),
        seen_tid: AtomicU32::new(0),
        timer: AtomicU32::new(0),
        last_ns: AtomicU64::new(0),
        is_met: AtomicBool::new(false),
        start: AtomicUsize::new(0),
        argument: AtomicUsize::new(0),
    }
}; ENTRIES];
/// Where a free entry is looked for first.
static NEXT: AtomicUsize = AtomicUsize::new(0);
static TAKEN: AtomicUsize = AtomicUsize::new(0);
/// When so many are taken they are looked through.
static LOOK_AT: AtomicUsize = AtomicUsize::new(FEW);
/// No timer is made any more.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// An entry for a thread that is about to begin; none when all are taken, or there are to be no more timers.
pub(crate) fn claim() -> Option<&'static Entry> {
    if !is_open() {
        return None;
    }
    if TAKEN.load(Ordering::Relaxed) >= LOOK_AT.load(Ordering::Relaxed) {
        look_through();
    }
    let first = NEXT.fetch_add(1, Ordering::Relaxed);
    let order = (0..ENTRIES).map(|step| first.wrapping_add(step) % ENTRIES);
    let entry = order.filter_map(|at| TABLE.get(at)).find(|entry| entry.moves(FREE, BUSY))?;
    TAKEN.fetch_add(1, Ordering::Relaxed);
    Some(entry)
}

/// Gives back the timers of threads that have ended.
fn look_through() {
    let pid = sys::getpid();
    for entry in &TABLE {
        let is_over = entry.state.load(Ordering::Acquire) == LIVE
            && !kernel::is_alive(pid, entry.tid.load(Ordering::Relaxed));
        if is_over && entry.moves(LIVE, BUSY) {
            kernel::timer_delete(entry.timer.load(Ordering::Relaxed));
            entry.release();
        }
    }
    LOOK_AT.store((TAKEN.load(Ordering::Relaxed) * 2).clamp(FEW, ENTRIES), Ordering::Relaxed);
}

/// Ends all timers of this process, for good: what comes next may forbid the calls of our handler.
pub(crate) fn close() {
    IS_CLOSED.store(true, Ordering::Relaxed);
    for entry in &TABLE {
        if entry.moves(LIVE, BUSY) {
            kernel::timer_delete(entry.timer.load(Ordering::Relaxed));
            entry.release();
        }
    }
}

/// Returns whether timers are made.
pub(crate) fn is_open() -> bool {
    !IS_CLOSED.load(Ordering::Relaxed)
}

/// In a forked child: timers are not inherited, and nobody else is here.
pub(crate) fn forget() {
    for entry in &TABLE {
        entry.state.store(FREE, Ordering::Relaxed);
    }
    TAKEN.store(0, Ordering::Relaxed);
    LOOK_AT.store(FEW, Ordering::Relaxed);
}

/// The entry that a signal's value means; none if it is not one of ours.
pub(crate) fn of_value(value: usize) -> Option<&'static Entry> {
    let offset = value.checked_sub(TABLE.as_ptr() as usize)?;
    let entry = TABLE.get(offset / size_of::<Entry>())?;
    (core::ptr::from_ref(entry) as usize == value).then_some(entry)
}

impl Entry {
    fn moves(&self, from: u32, to: u32) -> bool {
        self.state.load(Ordering::Relaxed) == from
            && self.state.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Nobody has it any more.
    pub(crate) fn release(&self) {
        self.state.store(FREE, Ordering::Release);
        TAKEN.fetch_sub(1, Ordering::Relaxed);
    }

    /// Makes the calling thread the entry's, with a timer that runs.
    pub(crate) fn begin(&'static self, memory: Memory) {
        let tid = sys::gettid();
        let is_wanted = is_open();
        let value = core::ptr::from_ref(self) as usize;
        let Some(timer) = is_wanted.then(|| kernel::timer_create(tid, signals::ours(), value)).flatten()
        else {
            memory.count(|header| &header.threads_without);
            return self.release();
        };
        self.tid.store(tid, Ordering::Relaxed);
        self.seen_tid.store(ids::tid(), Ordering::Relaxed);
        self.timer.store(timer, Ordering::Relaxed);
        self.is_met.store(false, Ordering::Relaxed);
        // What came before was the loader's, or the kernel's.
        self.last_ns.store(kernel::thread_cpu_ns(), Ordering::Relaxed);
        self.state.store(LIVE, Ordering::Release);
        kernel::unblock(signals::ours());
        // At the next tick, so that short threads are met as often as they should be.
        kernel::timer_set(timer, 1, memory.period_ns());
        if !is_open() {
            close();
        }
    }

    /// Its thread, as mallow has it.
    pub(crate) fn seen_tid(&self) -> u32 {
        self.seen_tid.load(Ordering::Relaxed)
    }

    /// Ends its timer, which the table keeps.
    pub(crate) fn stop(&self) {
        kernel::timer_set(self.timer.load(Ordering::Relaxed), 0, 0);
    }
}
