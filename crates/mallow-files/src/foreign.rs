//! Executables and libraries, read within limits.
//!
//! A file with holes has any length and takes nothing of a disk, and tables in a file can name the same bytes any number of times. Who reads what
//! tables name into memory gets an error when it comes to more than an honest file has.

use rustix::fs::SeekFrom as Place;
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How long any file may be, and for each byte that it stores: some file systems pack.
const LENGTH_ALLOWED: u64 = 48 << 20;
const LENGTH_PER_STORED: u64 = 8;
/// How much may be read of any file, and for each byte that it stores.
const READ_ALLOWED: u64 = 128 << 20;
const READ_PER_STORED: u64 = 4;

/// A file that is read at places that it names itself.
#[derive(Debug)]
pub struct ForeignFile {
    file: File,
    /// How long it is taken for.
    bytes: u64,
    bytes_left: u64,
}

impl ForeignFile {
    /// Opens a regular file: opening a pipe would wait, and a device may act.
    ///
    /// # Errors
    /// It cannot be opened, or is none.
    pub fn open(path: &Path) -> io::Result<ForeignFile> {
        match std::fs::metadata(path)?.is_file() {
            true => ForeignFile::of(File::open(path)?),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        }
    }

    /// The same of one that is open.
    ///
    /// # Errors
    /// Nothing can be known of it.
    pub fn of(file: File) -> io::Result<ForeignFile> {
        let stored = stored_bytes(&file)?;
        let bytes = file.metadata()?.len().min(length_max(stored));
        Ok(ForeignFile { file, bytes, bytes_left: READ_ALLOWED.max(stored.saturating_mul(READ_PER_STORED)) })
    }
}

/// Whether a file that stores so much is longer than that explains.
pub fn is_hollow(length: u64, stored_bytes: u64) -> bool {
    length > length_max(stored_bytes)
}

fn length_max(stored_bytes: u64) -> u64 {
    LENGTH_ALLOWED.max(stored_bytes.saturating_mul(LENGTH_PER_STORED))
}

/// What a file stores beside its holes. It is read from its start afterwards.
///
/// # Errors
/// Nothing can be known of it.
pub fn stored_bytes(file: &File) -> io::Result<u64> {
    let found = file.metadata()?;
    let on_disk = found.blocks().saturating_mul(512);
    // Some file systems count blocks only when they are written out, which takes seconds.
    match is_hollow(found.len(), on_disk) {
        true => Ok(on_disk.max(beside_holes(file, found.len())?)),
        false => Ok(on_disk),
    }
}

/// The bytes of a file that are in no hole. Where holes are not known there are none.
fn beside_holes(file: &File, length: u64) -> io::Result<u64> {
    const EXTENTS_MAX: usize = 10_000;
    let (mut at, mut bytes) = (0, 0);
    for _ in 0..EXTENTS_MAX {
        let start = match rustix::fs::seek(file, Place::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => break,
            Err(_) => return Ok(length),
        };
        at = rustix::fs::seek(file, Place::Hole(start))?;
        bytes += at.saturating_sub(start);
    }
    rustix::fs::seek(file, Place::Start(0))?;
    Ok(bytes)
}

impl Read for ForeignFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.bytes_left = self.bytes_left.checked_sub(read as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(read)
    }
}

impl Seek for ForeignFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match to {
            SeekFrom::End(distance) => {
                let place = self.bytes.checked_add_signed(distance).ok_or(io::ErrorKind::InvalidInput)?;
                self.file.seek(SeekFrom::Start(place))
            }
            to => self.file.seek(to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_with_a_hole_is_taken_for_shorter() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 4096]).unwrap();
        file.set_len(1 << 40).unwrap();
        assert!(is_hollow(1 << 40, stored_bytes(&file).unwrap()));
        assert_eq!(beside_holes(&file, 1 << 40).unwrap(), 4096);
        let mut foreign = ForeignFile::of(file).unwrap();
        assert_eq!(foreign.seek(SeekFrom::End(0)).unwrap(), LENGTH_ALLOWED);
        assert_eq!(foreign.seek(SeekFrom::End(-1)).unwrap(), LENGTH_ALLOWED - 1);
    }

    #[test]
    fn the_same_bytes_are_read_a_limited_number_of_times() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 1 << 20]).unwrap();
        assert!(!is_hollow(1 << 20, stored_bytes(&file).unwrap()));
        assert_eq!(beside_holes(&file, 1 << 20).unwrap(), 1 << 20);
        let mut foreign = ForeignFile::of(file).unwrap();
        let mut read =
            || foreign.seek(SeekFrom::Start(0)).and_then(|_| foreign.read_exact(&mut [0; 1 << 20]));
        let whole = (0..1000).take_while(|_| read().is_ok()).count() as u64;
        assert_eq!(whole, READ_ALLOWED >> 20);
    }
}
