//! A file mapped into our memory, read-only.
//!
//! The only `unsafe` code of this crate is here.

use std::fs::{File, Metadata};
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use rustix::fs::{Mode, OFlags};

use crate::kept;

/// The bytes of one ELF file and where they came from.
pub(crate) struct Mapped {
    path: PathBuf,
    identity: String,
    bytes: Mmap,
}

impl Mapped {
    /// Maps a regular file. Directories, devices and pipes are refused: mapping or reading them would block or lie.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let regular = |found: Metadata| match found.is_file() {
            true => Ok(()),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        };
        // Opening a device can do things, so it is looked at before. It can be another one by then: one opens a pipe that nobody writes to, and waits.
        regular(std::fs::metadata(path)?)?;
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        regular(file.metadata()?)?;
        // SAFETY: the mapping is private and read-only, and nobody in this process writes to the file. Another process
        // could change or truncate it while it is mapped; we accept that as debuggers and profilers do, because
        // linkers and package managers replace libraries by a new inode instead of writing into the old one, and
        // because a 100 MB library must not be copied to look at a few pages of it. What is read is only ever
        // interpreted by bounds-checked parsers and never assumed to be stable between two reads.
        let bytes = unsafe { Mmap::map(&file)? };
        let identity = kept::identity(path).unwrap_or_default();
        Ok(Self { path: path.to_owned(), identity, bytes })
    }

    /// Which file was opened.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    /// The path that was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}
