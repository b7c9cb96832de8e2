//! What a worker does in tests instead of its work, as an environment variable says: a file that makes a parser do all of this is hard to come by. Only in builds
//! for development.
//!
//! The variable is `KIND:NAME`; modules are meant whose path ends with the name.

use crate::messages::{self, PART};
use mallow_symbols::ModuleKey;
use rustix::process::{Pid, Signal, getpid, getppid, kill_process};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

const KIND_VARIABLE: &str = "MALLOW_LOOKUP_MISCHIEF";
const PATIENCE_VARIABLE: &str = "MALLOW_LOOKUP_PATIENCE_MS";

/// The child, which a worker may not ask for behind its filter.
static CHILD: AtomicI32 = AtomicI32::new(0);

/// How long an answer is waited for in a test.
pub(crate) fn patience() -> Option<Duration> {
    let millis = std::env::var(PATIENCE_VARIABLE).ok()?.parse().ok()?;
    Some(Duration::from_millis(millis))
}

/// The child knows it, too.
pub(crate) fn pass_on(command: &mut Command) {
    if let Some(kind) = std::env::var_os(KIND_VARIABLE) {
        command.env(KIND_VARIABLE, kind);
    }
}

fn kind(module: &ModuleKey) -> Option<String> {
    let wanted = std::env::var(KIND_VARIABLE).ok()?;
    let (kind, name) = wanted.split_once(':')?;
    module.path.ends_with(name).then(|| kind.to_owned())
}

/// What is done instead of the look-up.
pub(crate) fn before(module: &ModuleKey) {
    match kind(module).as_deref() {
        Some("crash") => std::process::abort(),
        Some("loop") => spin(),
        Some("recurse") => deep(&mut 0),
        Some("memory") => {
            let mut held = Vec::new();
            while held.len() < 4096 {
                held.push(vec![1_u8; 1 << 20]);
            }
            assert!(held.iter().all(|bytes| bytes[4711] == 1));
        }
        Some("panic") => panic!("as a test wants it"),
        Some("break-out") => break_out(&module.path),
        _ => {}
    }
}

/// Stops or ends the worker itself, or the child, which is done before the filter forbids it.
pub(crate) fn unfiltered(module: &ModuleKey) {
    CHILD.store(getppid().map_or(0, |pid| pid.as_raw_nonzero().get()), Ordering::Relaxed);
    let send = |pid: Option<Pid>, signal| {
        if let Some(pid) = pid {
            let _ = kill_process(pid, signal);
        }
    };
    match kind(module).as_deref() {
        Some("stop") => send(Some(getpid()), Signal::STOP),
        Some("stop-child") => {
            send(getppid(), Signal::STOP);
            spin();
        }
        // A test that waits for this knows that a look-up is under way, which will not end.
        Some("tell") => {
            let _ = rustix::fs::mkdir(format!("{}.looked-at", module.path), 0o700.into());
            spin();
        }
        Some("kill") => send(Some(getpid()), Signal::KILL),
        // The worker ends with the child, but not before it has heard of it: it must not have answered by then.
        Some("kill-child") => {
            send(getppid(), Signal::KILL);
            spin();
        }
        _ => {}
    }
}

fn spin() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

#[expect(unconditional_recursion, reason = "it is to run out of stack")]
fn deep(depth: &mut u64) {
    *depth += 1;
    let mut more = std::hint::black_box([*depth; 64]);
    deep(&mut more[0]);
}

/// Does what only somebody would who runs code of his own; everything is to fail, and what does not is seen by the test.
fn break_out(path: &str) {
    let file = format!("{path}.was-here");
    let _ = rustix::fs::open(&file, rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY, 0o600.into());
    let _ = rustix::fs::mkdir(&file, 0o700.into());
    let _ = rustix::fs::unlink(format!("{path}.victim"));
    let _ = rustix::fs::rename(format!("{path}.victim"), &file);
    if let Some(pid) = Pid::from_raw(CHILD.load(Ordering::Relaxed)) {
        let _ = kill_process(pid, Signal::KILL);
    }
    let _ = Command::new("/bin/touch").arg(&file).status();
    // SAFETY: the copy ends at once, or makes a folder.
    unsafe {
        if libc::fork() == 0 {
            let _ = rustix::fs::mkdir(&file, 0o700.into());
            libc::_exit(0);
        }
    }
}

/// What becomes of the answer.
pub(crate) fn with(job: &OwnedFd, module: &ModuleKey, bytes: &mut Vec<u8>) {
    match kind(module).as_deref() {
        Some("truncated") => bytes.truncate(bytes.len() / 2),
        Some("nothing") => bytes.clear(),
        Some("long") => bytes.resize(80 << 20, 7),
        // The checksum of what is changed is right.
        Some("indices") => {
            let at = bytes.len() - 17;
            bytes[at..].fill(0xfe);
            let crc = crc32fast::hash(&bytes[14..]);
            bytes[10..14].copy_from_slice(&crc.to_le_bytes());
        }
        Some("unknown-kind") => {
            let _ = messages::send(job, &[b"Z?"], &[], true);
        }
        Some("half") => {
            let _ = messages::send(job, &[&[PART], &bytes[..bytes.len() / 2]], &[], true);
            std::process::abort();
        }
        _ => {}
    }
}
