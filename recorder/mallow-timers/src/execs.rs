//! The moment before another program takes this one's place. A sample that is made on the way would send its signal to that program, which has no handler
//! and would end by it. So the process's events end before, and come back where there is no such program.
//!
//! The doubt: who executes a program by the system call itself, past the C library.

use crate::handler::SI_EVENT;
use crate::kernel;
use crate::memory::{Memory, memory};
use crate::{regions, signals};
use core::ffi::c_int;
use core::mem::transmute;
use mallow_recorder::real::Real;
use mallow_recorder::{export_before, process};
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

/// Finds the real functions. Early, because that takes the loader's lock, which in a forked child may be held by a thread that the
/// child does not have.
pub(crate) fn find_real() {
    for real in [&EXECVE, &EXECV, &EXECVP, &EXECVPE, &EXECL, &EXECLE, &EXECLP, &FEXECVE, &EXECVEAT] {
        let _ = real.address();
    }
}

macro_rules! exec {
    ($($name:ident($($argument:ident),*) => $real:ident),* $(,)?) => {$(
        #[doc = concat!("`", stringify!($name), "`: without events on the way.")]
        ///
        /// # Safety
        /// As the function that it stands for.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: usize),*) -> c_int {
            type Exec = unsafe extern "C" fn($(exec!(@word $argument)),*) -> c_int;
            let ended = end_events();
            // SAFETY: by contract; pointers and numbers go on as they are.
            let answer = unsafe { transmute::<usize, Exec>($real.address())($($argument),*) };
            if let Some(memory) = ended {
                regions::ask_for_events(memory);
            }
            answer
        }
    )*};
    (@word $argument:ident) => { usize };
}

exec!(
    execve(path, words, environment) => EXECVE,
    execv(path, words) => EXECV,
    execvp(name, words) => EXECVP,
    execvpe(name, words, environment) => EXECVPE,
    fexecve(file, words, environment) => FEXECVE,
    execveat(folder, path, words, environment, flags) => EXECVEAT,
);

// Their words are as many as they like. Where there is no such program, the rest of this one has native stacks.
export_before!(execl => before_execl);
export_before!(execle => before_execle);
export_before!(execlp => before_execlp);

extern "C" fn before_execl() -> usize {
    end_events();
    EXECL.address()
}

extern "C" fn before_execle() -> usize {
    end_events();
    EXECLE.address()
}

extern "C" fn before_execlp() -> usize {
    end_events();
    EXECLP.address()
}

/// Ends the events, and takes signals that wait, as somebody had blocked them. Gives whom to ask for others; none where there were no events.
pub(crate) fn end_events() -> Option<Memory> {
    let memory = memory().filter(|memory| memory.way() == BY_EVENTS)?;
    // A child of `vfork` has its parent's memory, and no events.
    if process::is_of_parent() || !regions::end_events(memory) {
        return None;
    }
    while let Some(code) = kernel::take_waiting(signals::ours()) {
        if code != SI_EVENT {
            // Another sender's; it waits again where it is blocked.
            kernel::raise(signals::ours());
            break;
        }
    }
    Some(memory)
}
