//! What mallow was started with and cannot live with, or what Rust's runtime changes before `main`: what mallow starts for its user is to have it as without
//! mallow.
//!
//! - SIGPIPE ignored, as by `trap '' PIPE` in a shell and by systemd for its services. The runtime ignores it always, and `Command` takes it back to the
//!   default: a server that relies on being told by `write` that a client is gone would be killed.
//! - SIGCHLD ignored. While a process ignores it, the kernel keeps no status of its children: a program that failed could not be told from one
//!   that did not.
//! - Signals 32 to 34 blocked, which are a C library's own: where mallow is linked with musl, its first thread unblocks two of them, and its functions neither
//!   show nor set any. To a program with another C library 34 is the first of its own.
//! - A standard stream that is closed, as by `<&-` in a shell: the runtime opens `/dev/null` in its place, in which a program could write without an error.
//!
//! The runtime comes first and tells nobody, so all are looked at before it: [`take_over`] has to be among the executable's `.init_array`.

use crate::first_process;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The signals, and whether we were started ignoring them.
static IGNORED: [(libc::c_int, AtomicBool); 2] =
    [(libc::SIGPIPE, AtomicBool::new(false)), (libc::SIGCHLD, AtomicBool::new(false))];

/// The signals of C libraries that were blocked when we were started, a bit for each.
static BLOCKED: AtomicU64 = AtomicU64::new(0);
const OF_C_LIBRARIES: u64 = 0b111 << 31;

/// Changes the set of blocked signals by the system call itself, and returns the one before.
fn block(signals: u64) -> u64 {
    let mut before = 0u64;
    // SAFETY: the kernel reads one word and writes another.
    unsafe {
        let (new, old) = (&raw const signals, &raw mut before);
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, new, old, size_of::<u64>());
    }
    before
}

/// Whether we were started without stdin, stdout and stderr.
static CLOSED: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// Notes all of that, and ignores SIGCHLD no longer. Nothing of the runtime is there yet. Returns in a child if this is the first process of a container.
pub extern "C" fn take_over() {
    for (signal, was_ignored) in &IGNORED {
        // SAFETY: integers and pointers: zeros are valid.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: it only reads the action of a signal, into memory of ours.
        let asked = unsafe { libc::sigaction(*signal, std::ptr::null(), &raw mut action) };
        was_ignored.store(asked == 0 && action.sa_sigaction == libc::SIG_IGN, Ordering::Relaxed);
    }
    BLOCKED.store(block(0) & OF_C_LIBRARIES, Ordering::Relaxed);
    for (stream, was_closed) in (0..).zip(&CLOSED) {
        // SAFETY: it only asks about a descriptor.
        was_closed.store(unsafe { libc::fcntl(stream, libc::F_GETFD) } < 0, Ordering::Relaxed);
    }
    // SAFETY: no handler is set, and there is no child yet.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    if std::process::id() == 1 {
        first_process::leave_it_behind();
    }
}

/// Has what `command` starts inherit it. `streams` says which of stdin, stdout and stderr are ours.
pub fn pass_on(command: &mut Command, streams: [bool; 3]) {
    let is_closed = |stream: usize| streams[stream] && CLOSED[stream].load(Ordering::Relaxed);
    let closed = [is_closed(0), is_closed(1), is_closed(2)];
    let ignored = IGNORED.each_ref().map(|(_, was_ignored)| was_ignored.load(Ordering::Relaxed));
    let blocked = BLOCKED.load(Ordering::Relaxed);
    if closed.contains(&true) || ignored.contains(&true) || blocked != 0 {
        // SAFETY: between fork and exec it makes system calls and touches no memory but its own.
        unsafe { command.pre_exec(move || inherit(ignored, closed, blocked)) };
    }
}

/// In the child, which becomes another program.
fn inherit(ignored: [bool; 2], closed: [bool; 3], blocked: u64) -> io::Result<()> {
    block(blocked);
    for ((signal, _), _) in IGNORED.iter().zip(ignored).filter(|(_, is_ignored)| *is_ignored) {
        // SAFETY: no handler is set.
        unsafe { libc::signal(*signal, libc::SIG_IGN) };
    }
    for (stream, _) in (0..).zip(closed).filter(|(_, is_closed)| *is_closed) {
        close(stream);
    }
    Ok(())
}

fn close(stream: RawFd) {
    // SAFETY: it is the `/dev/null` of Rust's runtime, which nobody uses in this process any more.
    unsafe { libc::close(stream) };
}
