//! Whether a look-up may start threads of its own. Where a program looks up its own names while it is recorded, it may not: they would be recorded
//! like the program's.

use std::cell::Cell;

thread_local! {
    static IS_ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Runs a function whose look-ups start no threads.
pub fn without_threads<T>(work: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            IS_ALONE.set(self.0);
        }
    }
    let _before = Before(IS_ALONE.replace(true));
    work()
}

/// Returns whether threads may be started here.
pub(crate) fn may_start() -> bool {
    !IS_ALONE.get()
}
