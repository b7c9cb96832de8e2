//! The moment before another program takes this one's place: a signal of ours that waits, as somebody had blocked it, would meet that program without
//! a handler, and end it.

use crate::handler::SI_EVENT;
use crate::kernel;
use crate::memory::memory;
use crate::signals;
use mallow_recorder::export_before;
use mallow_recorder::real::Real;
use mallow_wire::timers::BY_EVENTS;

static EXECVE: Real = Real::named(c"execve");
static EXECV: Real = Real::named(c"execv");
static EXECVP: Real = Real::named(c"execvp");
static EXECVPE: Real = Real::named(c"execvpe");
static EXECL: Real = Real::named(c"execl");
static EXECLE: Real = Real::named(c"execle");
static EXECLP: Real = Real::named(c"execlp");
static FEXECVE: Real = Real::named(c"fexecve");
static EXECVEAT: Real = Real::named(c"execveat");

export_before!(execve => before_execve);
export_before!(execv => before_execv);
export_before!(execvp => before_execvp);
export_before!(execvpe => before_execvpe);
export_before!(execl => before_execl);
export_before!(execle => before_execle);
export_before!(execlp => before_execlp);
export_before!(fexecve => before_fexecve);
export_before!(execveat => before_execveat);

macro_rules! before {
    ($($name:ident => $real:ident),*) => {$(
        extern "C" fn $name() -> usize {
            take_ours();
            $real.address()
        }
    )*};
}

before!(
    before_execve => EXECVE, before_execv => EXECV, before_execvp => EXECVP, before_execvpe => EXECVPE,
    before_execl => EXECL, before_execle => EXECLE, before_execlp => EXECLP, before_fexecve => FEXECVE,
    before_execveat => EXECVEAT
);

/// Finds the real functions. Early, because that takes the loader's lock, which in a forked child may be held by a thread that the
/// child does not have.
pub(crate) fn find_real() {
    for real in [&EXECVE, &EXECV, &EXECVP, &EXECVPE, &EXECL, &EXECLE, &EXECLP, &FEXECVE, &EXECVEAT] {
        let _ = real.address();
    }
}

/// A signal with another sender stays.
fn take_ours() {
    if memory().is_none_or(|memory| memory.way() != BY_EVENTS) {
        return;
    }
    while let Some(code) = kernel::take_waiting(signals::ours()) {
        if code != SI_EVENT {
            // It waits again, as it is blocked.
            return kernel::raise(signals::ours());
        }
    }
}
