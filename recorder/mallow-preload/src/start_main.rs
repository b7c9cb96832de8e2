//! The moment at which `main` is called, for those who count from there, for the helper thread, which begins there, and for runtimes that are
//! asked for something.

use crate::helper_thread;
use crate::marks;
use mallow_recorder::runtimes::{self, MainArguments};
use mallow_recorder::{Caller, bootstrap, export_start_main};
use mallow_wire::event::Mark;
use mallow_wire::shared::{FEATURE_HELPER_THREAD, FEATURE_MARKS};

export_start_main!(is_wanted, work);

fn is_wanted() -> bool {
    bootstrap::watches(FEATURE_MARKS | FEATURE_HELPER_THREAD) == Some(true) || runtimes::is_concerned()
}

/// # Safety
/// The registers are those of libc's call of `main`, and so are the arguments.
unsafe fn work(caller: Caller, main: &mut MainArguments) {
    // SAFETY: by contract.
    unsafe { marks::mark(caller, Mark::Main, b"", 0) };
    helper_thread::begin();
    // SAFETY: by contract.
    unsafe { runtimes::ask(main) };
}
