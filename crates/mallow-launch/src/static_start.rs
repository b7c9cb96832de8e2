//! Starting a static executable with the library in it.

use crate::{LaunchError, SpawnOptions};
use mallow_inject::{InjectError, Library, NOT_ALLOWED, be_traced, load};
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

/// Why a static executable could not be started.
pub(crate) enum StaticStartError {
    /// The program cannot be run.
    Run(io::Error),
    /// The library does not get into it.
    Inject(String),
}

impl StaticStartError {
    /// As a sentence about a command's program.
    pub(crate) fn named(self, command: &OsStr, program: &Path) -> LaunchError {
        match self {
            StaticStartError::Run(cause) => LaunchError::cannot_run(command)(cause),
            StaticStartError::Inject(reason) => {
                LaunchError::CannotInject { path: program.to_owned(), reason }
            }
        }
    }
}

/// Starts a command that becomes a static executable, with the library at `path` mapped into it.
pub(crate) fn start(
    mut command: Command,
    path: &Path,
    options: &SpawnOptions,
) -> Result<Child, StaticStartError> {
    let inject = |error: InjectError| StaticStartError::Inject(format!("{error}; {STATIC_CURE}"));
    let file = std::fs::read(path).map_err(StaticStartError::Run)?;
    let library = Library::parse(&file).map_err(inject)?;
    // SAFETY: between fork and exec it makes two system calls and touches no memory but its own.
    unsafe { command.pre_exec(be_traced) };
    let mut child = options.spawn(command).map_err(|cause| match cause.raw_os_error() {
        Some(NOT_ALLOWED) => StaticStartError::Inject(format!("{NOT_TRACED}; {STATIC_CURE}")),
        _ => StaticStartError::Run(cause),
    })?;
    load(child.id(), path, &library).map_err(|error| {
        let _ = child.wait();
        inject(error)
    })?;
    Ok(child)
}

const NOT_TRACED: &str = "the system does not let mallow trace it before its first instruction (a sandbox, a policy against ptrace, or a \
    debugger that traces mallow)";

/// What to do instead, where a static program cannot be recorded.
pub const STATIC_CURE: &str = "link it dynamically (without -static; for Rust's musl targets with -C target-feature=-crt-static), put the crate \
    mallow-alloc of this version in it, or use valgrind --tool=dhat, which runs static programs";
