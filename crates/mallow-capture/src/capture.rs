//! One snapshot of one process.

use crate::process::{self, Runtime};
use crate::target::Target;
use crate::{CaptureError, fifo, jvm, node};
use mallow_launch::started::is_alive;
use std::path::{Path, PathBuf};

/// How a snapshot is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options<'a> {
    /// A file that does not exist, or a folder; none for this folder.
    pub output: Option<&'a Path>,
    /// Without the contents of strings.
    pub redact: bool,
    /// With what nothing refers to, where the runtime would leave that out.
    pub all: bool,
}

/// A snapshot that is there.
#[derive(Debug)]
pub struct Captured {
    /// Its file.
    pub path: PathBuf,
    /// The file's size.
    pub bytes: u64,
}

/// Takes a snapshot. `begins` is told the runtime before it is asked.
///
/// # Errors
/// When the process is not there, cannot be asked or does not answer, and when the file exists.
pub fn capture(
    pid: u32,
    options: &Options<'_>,
    begins: impl FnOnce(Runtime),
) -> Result<Captured, CaptureError> {
    if !is_alive(pid) {
        return Err(CaptureError::NoProcess(pid));
    }
    let name = process::name(pid);
    if std::fs::read_link(process::file(pid, "exe")).is_err() {
        return Err(CaptureError::NotOurs(pid));
    }
    let runtime = process::runtime(pid).ok_or_else(|| {
        let mut below = process::family(pid);
        below.retain(|pid| process::runtime(*pid).is_some());
        let below = below.into_iter().map(|pid| (pid, process::name(pid))).collect();
        CaptureError::NoRuntime { pid, name: name.clone(), below }
    })?;
    match runtime {
        Runtime::Node if options.redact => return Err(CaptureError::CannotRedact("Node")),
        Runtime::Jvm if options.redact => return Err(CaptureError::CannotRedact("a JVM")),
        _ => {}
    }
    let target = Target::new(options.output, (&name, pid), runtime)?;
    let begins = || begins(runtime);
    let bytes = match runtime {
        Runtime::Ruby | Runtime::Python => fifo::capture((pid, runtime), &target, options.redact, begins),
        Runtime::Node => node::capture(pid, &target, begins),
        Runtime::Jvm => jvm::capture(pid, &target, options.all, begins),
    }?;
    Ok(Captured { path: target.path().to_owned(), bytes })
}
