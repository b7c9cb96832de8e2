//! Output: results to stdout, everything else to stderr.
//!
//! A reader that closes its end early, such as `head`, has what it wanted; that is not an error. A full disk is one.

use mallow_query::{Failure, reason};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Writes a result to stdout.
pub(crate) fn to_stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    // `Stdout` would search the whole text for line breaks; a document of half a gigabyte has none.
    let file = |stdout: io::StdoutLock<'_>| stdout.as_fd().try_clone_to_owned().map(File::from);
    let written = file(io::stdout().lock()).and_then(|file| {
        let mut out = BufWriter::new(file);
        write(&mut out).and_then(|()| out.flush())
    });
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::new(format!("cannot write to stdout: {}.", reason(&error)))),
        Ok(()) => Ok(()),
    }
}

/// Creates a file that only its owner can read; overwrites an existing one only if forced.
pub(crate) fn create(path: &Path, force: bool) -> Result<File, Failure> {
    let made = if force { mallow_files::overwrite(path) } else { mallow_files::create_new(path) };
    made.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure::new(format!("{} exists; use --force to overwrite it.", path.display()))
        }
        _ => Failure::writing(path, &error),
    })
}

/// Writes a result to a file that [`create`] made.
pub(crate) fn to_file(path: &Path, file: &mut File, text: &str) -> Result<(), Failure> {
    file.write_all(text.as_bytes()).map_err(|error| Failure::writing(path, &error))
}

/// Whether `--quiet` was given.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// From now on, only warnings and errors are printed.
pub(crate) fn be_quiet() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

pub(crate) fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// Prints what an experienced user does not need: a summary, where a result is, what to do next.
pub(crate) fn inform(text: &str) {
    if !is_quiet() {
        tell(text);
    }
}

/// Prints what happened to a file that was tried for names.
pub(crate) fn tried(path: &Path, outcome: &str) {
    let [path, outcome] = [&path.to_string_lossy(), outcome].map(mallow_text::printable);
    tell(&format!("mallow: tried {path}: {outcome}\n"));
}

/// Prints something beside the result. If stderr is closed, nothing can be done.
pub(crate) fn tell(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints notes, one line each.
pub(crate) fn note(sentences: &[String]) {
    for sentence in sentences {
        inform(&format!("mallow: note: {sentence}\n"));
    }
}

/// Prints warnings, one line each.
pub(crate) fn warn(sentences: &[String]) {
    for sentence in sentences {
        tell(&format!("mallow: warning: {sentence}\n"));
    }
}
