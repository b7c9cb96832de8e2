//! The moment before `main`, at which a runtime that makes code is asked to write it down.

use crate::{memory, threads};
use mallow_recorder::runtimes::{self, MainArguments};
use mallow_recorder::{Caller, export_start_main, session, sys};
use mallow_wire::timers::{ASKED, Note, VARIABLE};

export_start_main!(is_wanted, work);

fn is_wanted() -> bool {
    threads::is_open() && runtimes::is_concerned_in_samples() && session::variable(VARIABLE).is_some()
}

/// # Safety
/// The arguments are those of `main`.
unsafe fn work(_: Caller, main: &mut MainArguments) {
    // SAFETY: by contract.
    if !unsafe { runtimes::ask_in_samples(main) } {
        return;
    }
    if let Some(slot) = memory::open_if_needed().and_then(|memory| memory.claim(sys::gettid())) {
        let (pid, time_ns) = (sys::getpid(), sys::monotonic_ns());
        slot.publish(Note { kind: ASKED, pid, time_ns, ..Note::default() });
    }
}
