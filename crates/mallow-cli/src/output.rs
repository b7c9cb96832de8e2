//! Where text goes: results to stdout, everything else to stderr.
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
    // `Stdout` would search everything for ends of lines, which a document of half a gigabyte does not have.
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

/// Makes a file that only its owner can read; over an existing one only if forced.
pub(crate) fn create(path: &Path, force: bool) -> Result<File, Failure> {
    let made = if force { mallow_files::overwrite(path) } else { mallow_files::create_new(path) };
    made.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure::new(format!("{} exists; use --force to overwrite it.", path.display()))
        }
        _ => Failure::writing(path, &error),
    })
}

/// Writes a result to a file made by [`create`].
pub(crate) fn to_file(path: &Path, file: &mut File, text: &str) -> Result<(), Failure> {
    file.write_all(text.as_bytes()).map_err(|error| Failure::writing(path, &error))
}

/// What `--quiet` said.
static IS_QUIET: AtomicBool = AtomicBool::new(false);

/// Nothing is said from now on but warnings and what went wrong.
pub(crate) fn be_quiet() {
    IS_QUIET.store(true, Ordering::Relaxed);
}

pub(crate) fn is_quiet() -> bool {
    IS_QUIET.load(Ordering::Relaxed)
}

/// Tells what is no news to whoever is sure: a summary, where a result lies, what to do next.
pub(crate) fn inform(text: &str) {
    if !is_quiet() {
        tell(text);
    }
}

/// Tells what became of a file that was tried for names.
pub(crate) fn tried(path: &Path, outcome: &str) {
    tell(&format!("mallow: tried {}: {outcome}\n", mallow_text::printable(&path.to_string_lossy())));
}

/// Tells people something beside the result. Nobody can be told that stderr is closed.
pub(crate) fn tell(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Tells what is worth knowing and nobody's fault, one line each.
pub(crate) fn note(sentences: &[String]) {
    for sentence in sentences {
        inform(&format!("mallow: note: {sentence}\n"));
    }
}

/// Warns, one line each.
pub(crate) fn warn(sentences: &[String]) {
    for sentence in sentences {
        tell(&format!("mallow: warning: {sentence}\n"));
    }
}
