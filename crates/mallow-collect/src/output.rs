//! The trace's file: where it goes, and what it may replace.

use crate::error::CollectError;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Where the trace is written.
#[derive(Clone, Debug)]
pub enum Output {
    /// `NAME.PID.mallow` in this directory.
    Default(PathBuf),
    /// This file.
    File {
        /// Its path.
        path: PathBuf,
        /// Overwrite it when it exists.
        force: bool,
    },
}

/// The trace's file.
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
    /// Whether the file is new: then it is removed if the recording fails.
    pub(crate) is_new: bool,
}

/// Opens the trace's file, under a name of its own while the program's process id is not known.
pub(crate) fn open(output: &Output) -> Result<Opened, CollectError> {
    let (path, force) = match output {
        Output::File { path, .. } if path == Path::new("/dev/null") => {
            return Err(CollectError::NoFile { path: path.clone() });
        }
        Output::File { path, force } => (path.clone(), *force),
        Output::Default(directory) => {
            (directory.join(format!(".recording-{}.mallow", unguessable()?)), false)
        }
    };
    let (opened, is_new) = match mallow_files::create_new(&path) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists && force => {
            // Looked at before it is opened: opening a FIFO waits for a reader.
            if !is_overwritable(&path) {
                return Err(CollectError::NoFile { path });
            }
            (mallow_files::overwrite(&path), false)
        }
        opened => (opened, true),
    };
    match opened {
        Ok(file) => Ok(Opened { file, path, is_new }),
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => Err(CollectError::Exists { path }),
        Err(cause) => {
            let path = match output {
                Output::Default(directory) => directory.join("NAME.PID.mallow"),
                Output::File { path, .. } => path.clone(),
            };
            Err(CollectError::CannotWrite { path, cause })
        }
    }
}

/// Returns a random part of a name, under which no other user can have planted a file.
fn unguessable() -> Result<String, CollectError> {
    let mut bytes = [0u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(CollectError::system("draw a name for the trace"))?;
    Ok(mallow_base::hex(&bytes))
}

/// Returns whether it is a file, or a dangling symbolic link.
fn is_overwritable(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |found| found.is_file())
}

/// Renames a trace to `NAME.PID.mallow`. Pids are reused, and a trace may be somebody's work, so if that name is
/// taken `NAME.PID-2.mallow` is tried, and so on.
pub(crate) fn name_by_process(
    path: &Path,
    directory: &Path,
    name: &str,
    pid: u32,
) -> Result<PathBuf, CollectError> {
    const NUMBER_MAX: u32 = 1000;
    let mut named = directory.join(format!("{name}.{pid}.mallow"));
    for number in 2..=NUMBER_MAX {
        match rename_to_new(path, &named) {
            Ok(()) => return Ok(named),
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => {
                named = directory.join(format!("{name}.{pid}-{number}.mallow"));
            }
            Err(cause) => return Err(CollectError::CannotWrite { path: named, cause }),
        }
    }
    Err(CollectError::Exists { path: named })
}

/// Renames a file unless that would replace another.
fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        // Some file systems cannot do this in one step; a second name that replaces nothing is the same in
        // two.
        Err(Errno::INVAL | Errno::NOSYS) => {
            std::fs::hard_link(from, to).and_then(|()| std::fs::remove_file(from))
        }
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_takes_no_name_that_another_file_has() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        for (text, name) in [("a", "app.7.mallow"), ("b", "app.7-2.mallow"), ("c", "app.7-3.mallow")] {
            let fresh = place.join("fresh");
            std::fs::write(&fresh, text).unwrap();
            assert_eq!(name_by_process(&fresh, place, "app", 7).unwrap(), place.join(name));
            assert!(!fresh.exists());
        }
        assert_eq!(std::fs::read_to_string(place.join("app.7.mallow")).unwrap(), "a");
    }
}
