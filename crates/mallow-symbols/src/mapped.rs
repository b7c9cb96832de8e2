//! The bytes of a file: mapped into our memory, read-only, where nobody can cut it short, and copied where somebody can.
//!
//! Reading behind the new end of a mapped file that was cut short is SIGBUS, which ends mallow. Nothing but a handler could stop that, and a handler is
//! the whole process's. So who may write to a file decides: root and we ourselves could end mallow without one.
//!
//! The only `unsafe` code of this crate is here.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::ops::{Deref, Range};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{Mmap, MmapMut, MmapOptions};
use rustix::fs::{Mode, OFlags};

use crate::identity;

/// The bytes of one ELF file and where they came from.
pub(crate) struct Mapped {
    path: PathBuf,
    identity: String,
    stored_bytes: u64,
    bytes: Bytes,
}

const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK);

enum Bytes {
    Mapped(Mmap),
    Copied(Copied),
}

impl Mapped {
    /// Opens a regular file. Directories, devices and pipes are refused: mapping or reading them would block or lie.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let regular = |found: Metadata| match found.is_file() {
            true => Ok(found),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        };
        // Opening a device can have side effects, so it is checked before. It may be replaced meanwhile: opening a
        // pipe without a writer would block.
        regular(std::fs::metadata(path)?)?;
        let file = File::from(rustix::fs::open(path, FLAGS, Mode::empty())?);
        let found = regular(file.metadata()?)?;
        let stored_bytes = mallow_files::stored_bytes(&file)?;
        // To go through a table in a hole of a terabyte takes hours.
        if mallow_files::is_hollow(found.len(), stored_bytes) {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it is mostly holes"));
        }
        let bytes = match is_ours_alone(&file, &found) {
            // SAFETY: the mapping is private and read-only, and nobody in this process writes to the file. Other programs of root's or
            // ours may: what is read is only ever interpreted by bounds-checked parsers and never assumed to be stable between two reads,
            // and that none of them cuts it short is what linkers and package managers see to, which replace files by new inodes. A copy
            // of a 100 MB library to look at a few pages of it would cost more than the whole recording of a small program.
            true => Bytes::Mapped(unsafe { Mmap::map(&file)? }),
            false => Bytes::Copied(Copied::of(file, found.len(), &COPIED_BYTES)?),
        };
        let identity = identity::identity(path).unwrap_or_default();
        Ok(Self { path: path.to_owned(), identity, stored_bytes, bytes })
    }

    /// The same bytes to be changed in memory: those that are not changed are still the file's. None where they are a copy anyway, or the file
    /// is another one by now.
    pub(crate) fn changeable(&self, range: Range<usize>) -> Option<MmapMut> {
        let Bytes::Mapped(_) = self.bytes else { return None };
        let file = File::from(rustix::fs::open(&self.path, FLAGS, Mode::empty()).ok()?);
        let found = file.metadata().ok()?;
        if identity::identity_of(&self.path, &found) != self.identity || !is_ours_alone(&file, &found) {
            return None;
        }
        // SAFETY: private, and as in `open`.
        unsafe { MmapOptions::new().offset(range.start as u64).len(range.len()).map_copy(&file).ok() }
    }

    /// What it stores beside its holes.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.stored_bytes
    }

    /// The path that was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Mapped(bytes) => bytes,
            Bytes::Copied(copied) => &copied.bytes,
        }
    }
}

/// The type of a file system that is a program, according to statfs: its files have any length, and any owner.
const FUSE_MAGIC: rustix::fs::FsWord = 0x6573_5546;

/// Returns whether root and we alone may write to a file, or our own group, which is that of one person where files are made writable for it.
fn is_ours_alone(file: &File, found: &Metadata) -> bool {
    let is_owned = [0, rustix::process::geteuid().as_raw()].contains(&found.uid());
    let is_groups = found.mode() & 0o020 != 0 && found.gid() != rustix::process::getegid().as_raw();
    let is_everybodys = found.mode() & 0o002 != 0;
    is_owned
        && !is_groups
        && !is_everybodys
        && rustix::fs::fstatfs(file).is_ok_and(|system| system.f_type != FUSE_MAGIC)
}

/// The current memory of copies of files, all together.
static COPIED_BYTES: AtomicU64 = AtomicU64::new(0);
/// Its maximum.
const COPIED_BYTES_MAX: u64 = 1 << 30;

/// A file as it was when it was read.
struct Copied {
    bytes: Vec<u8>,
    taken_bytes: u64,
    all_taken_bytes: &'static AtomicU64,
}

impl Copied {
    fn of(file: File, file_bytes: u64, all_taken_bytes: &'static AtomicU64) -> io::Result<Copied> {
        let with_it = |taken: u64| taken.checked_add(file_bytes).filter(|sum| *sum <= COPIED_BYTES_MAX);
        all_taken_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, with_it).map_err(|_| {
            io::Error::new(
                io::ErrorKind::FileTooLarge,
                "others may write to it, and of such files 1 GiB is read at most; `chmod go-w` or its owner can mend that",
            )
        })?;
        let mut copied = Copied { bytes: Vec::new(), taken_bytes: file_bytes, all_taken_bytes };
        copied.bytes.try_reserve_exact(file_bytes as usize)?;
        // One that has grown since is read as far as it was.
        file.take(file_bytes).read_to_end(&mut copied.bytes)?;
        Ok(copied)
    }
}

impl Drop for Copied {
    fn drop(&mut self) {
        self.all_taken_bytes.fetch_sub(self.taken_bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    /// A file of three pages with this mode.
    fn file_with(mode: u32) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, [7; 3 << 12]).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        (folder, path)
    }

    #[test]
    fn a_file_that_others_may_write_is_whole_when_it_is_cut_short() {
        let (_folder, path) = file_with(0o646);
        let mapped = Mapped::open(&path).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        assert_eq!(mapped[..], [7; 3 << 12]);
    }

    #[test]
    fn a_file_of_another_user_is_whole_when_he_cuts_it_short() {
        let (_folder, path) = file_with(0o600);
        if !rustix::process::geteuid().is_root() {
            return assert!(matches!(Mapped::open(&path).unwrap().bytes, Bytes::Mapped(_)));
        }
        std::os::unix::fs::chown(&path, Some(65_534), Some(65_534)).unwrap();
        let mapped = Mapped::open(&path).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
        assert_eq!(mapped[..], [7; 3 << 12]);
    }

    #[test]
    fn what_is_changed_in_memory_is_not_in_the_file_and_no_other_file_is_taken_for_it() {
        let (_folder, path) = file_with(0o600);
        let mapped = Mapped::open(&path).unwrap();
        let mut changed = mapped.changeable(100..8000).unwrap();
        changed[5] = 9;
        assert_eq!((changed.len(), changed[5], changed[6], mapped[105]), (7900, 9, 7, 7));
        assert_eq!(fs::read(&path).unwrap(), [7; 3 << 12]);
        fs::rename(&path, path.with_extension("old")).unwrap();
        assert!(mapped.changeable(0..10).is_none());
        fs::write(&path, [8; 3 << 12]).unwrap();
        assert!(mapped.changeable(0..10).is_none());
    }

    #[test]
    fn a_file_that_is_mostly_a_hole_is_refused() {
        let (_folder, path) = file_with(0o600);
        File::options().write(true).open(&path).unwrap().set_len(1 << 40).unwrap();
        let refused = Mapped::open(&path).err().unwrap();
        assert_eq!(
            (refused.kind(), refused.to_string().as_str()),
            (io::ErrorKind::FileTooLarge, "it is mostly holes")
        );
    }

    #[test]
    fn a_file_that_is_ours_alone_is_mapped() {
        for mode in [0o600, 0o755, 0o664] {
            let (_folder, path) = file_with(mode);
            assert!(matches!(Mapped::open(&path).unwrap().bytes, Bytes::Mapped(_)), "{mode:o}");
        }
    }

    #[test]
    fn copies_take_no_more_than_their_bound_all_together() {
        static TAKEN: AtomicU64 = AtomicU64::new(0);
        let (_folder, path) = file_with(0o600);
        let copy = |bytes| Copied::of(File::open(&path).unwrap(), bytes, &TAKEN);
        let first = copy(3 << 12).unwrap();
        let refused = copy(COPIED_BYTES_MAX).err().unwrap();
        assert!(refused.to_string().starts_with("others may write to it"), "{refused}");
        drop(first);
        assert_eq!(TAKEN.load(Ordering::Relaxed), 0);
        assert_eq!(copy(1 << 12).unwrap().bytes.len(), 1 << 12);
    }
}
