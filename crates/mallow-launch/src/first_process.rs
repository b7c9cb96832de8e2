//! The first process of a container, which mallow is as its entry point: it inherits every process whose parent has ended, and has to wait for each. Whoever
//! does not fills the container with processes that have ended, until no more can be started.
//!
//! Programs that are made to be the entry point do so; with mallow in front of them they are not the first process any more. So mallow goes on in a child, and the first process does nothing but wait and pass signals on. What mallow starts and waits
//! for is never taken from it, as it is the child of another process.

use libc::{c_int, pid_t, sigset_t};

/// Goes on in a child; the first process stays here until it ends. Called before there is any thread.
pub(crate) fn leave_it_behind() {
    let (mut all, mut before) = (no_signals(), no_signals());
    // SAFETY: both sets are ours.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
    }
    // SAFETY: there is one thread, so the child has all that there is.
    let mallow = unsafe { libc::fork() };
    if mallow > 0 {
        wait_for_all(mallow, &all);
    }
    // Without a child, as there may be no more processes, mallow goes on in the first one.
    // SAFETY: as above.
    unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
}

fn no_signals() -> sigset_t {
    // SAFETY: integers: zeros are valid.
    unsafe { std::mem::zeroed() }
}

fn wait_for_all(mallow: pid_t, signals: &sigset_t) -> ! {
    loop {
        // SAFETY: integers and pointers: zeros are valid.
        let mut about: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: all signals are blocked; what comes is written to memory of ours.
        let signal = unsafe { libc::sigwaitinfo(signals, &raw mut about) };
        match signal {
            libc::SIGCHLD => reap(mallow),
            // The terminal has told mallow as well.
            _ if signal < 0 || about.si_code == libc::SI_KERNEL => {}
            // SAFETY: it sends a signal to a child that nobody has waited for yet.
            _ => _ = unsafe { libc::kill(mallow, signal) },
        }
    }
}

/// Waits for whoever has ended; ends as mallow has.
fn reap(mallow: pid_t) {
    loop {
        let mut status: c_int = 0;
        // SAFETY: the status is written to memory of ours.
        let child = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
        if child <= 0 {
            return;
        }
        if child == mallow {
            let code = match libc::WIFSIGNALED(status) {
                true => 128 + libc::WTERMSIG(status),
                false => libc::WEXITSTATUS(status),
            };
            // SAFETY: nothing of this process is to be written or told any more.
            unsafe { libc::_exit(code) };
        }
    }
}
