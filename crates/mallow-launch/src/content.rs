//! What a file is to hold.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// The content of a file that is written where it is not there already.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// As it is.
    Plain(&'a [u8]),
    /// Packed. It is unpacked only to be written: that takes longer than all else that a small program's recording begins with.
    Packed(Packed<'a>),
}

/// Bytes packed by zstd.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a> {
    /// Packed.
    pub zstd: &'a [u8],
    /// How many they are when they are unpacked.
    pub bytes: u64,
    /// Their CRC-32.
    pub checksum: u32,
}

impl<'a> Content<'a> {
    /// Its CRC-32.
    pub(crate) fn checksum(&self) -> u32 {
        match self {
            Content::Plain(bytes) => crc32fast::hash(bytes),
            Content::Packed(packed) => packed.checksum,
        }
    }

    /// Returns whether a file holds it: of what is packed, by length and checksum. The file is one that no other user can write.
    pub(crate) fn is_in(&self, path: &Path) -> bool {
        match self {
            // Of plans there is any number, and two may have one checksum.
            Content::Plain(bytes) => fs::read(path).is_ok_and(|found| found == *bytes),
            Content::Packed(packed) => {
                sums_of(path).is_ok_and(|found| found == (packed.bytes, packed.checksum))
            }
        }
    }

    /// The bytes themselves.
    ///
    /// # Errors
    /// If they were not packed by zstd.
    pub fn unpacked(&self) -> io::Result<Cow<'a, [u8]>> {
        match *self {
            Content::Plain(bytes) => Ok(Cow::Borrowed(bytes)),
            Content::Packed(packed) => {
                Ok(Cow::Owned(zstd::bulk::decompress(packed.zstd, packed.bytes as usize)?))
            }
        }
    }
}

/// The length and the CRC-32 of a file. It is read piece by piece, as memory for all of it would have to be made first.
fn sums_of(path: &Path) -> io::Result<(u64, u32)> {
    let (mut file, mut sum, mut piece) = (File::open(path)?, crc32fast::Hasher::new(), [0u8; 32 << 10]);
    let mut bytes = 0;
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok((bytes, sum.finalize()));
        }
        sum.update(&piece[..read]);
        bytes += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn a_file_is_held_against_length_and_checksum_without_unpacking() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let bytes: Vec<u8> = (0..100_000u32).map(|n| (n / 7) as u8).collect();
        // Whoever unpacked these would fail.
        let packed = Packed { zstd: b"none", bytes: 100_000, checksum: crc32fast::hash(&bytes) };
        for content in [Content::Plain(&bytes), Content::Packed(packed)] {
            let _ = std::fs::remove_file(&path);
            assert!(!content.is_in(&path));
            std::fs::write(&path, &bytes).unwrap();
            assert!(content.is_in(&path));
            let mut damaged = bytes.clone();
            damaged[70_000] ^= 1;
            for other in [&damaged[..], &bytes[1..], &[]] {
                std::fs::write(&path, other).unwrap();
                assert!(!content.is_in(&path));
            }
        }
        assert!(Content::Packed(packed).unpacked().is_err());
    }

    #[test]
    fn what_is_plain_is_no_other_content_with_its_checksum() {
        let mut known = HashMap::new();
        let texts = (1u64..).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
        let (one, other) = texts
            .into_iter()
            .find_map(|text| Some((known.insert(crc32fast::hash(&text), text)?, text)))
            .unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, one).unwrap();
        assert_eq!(Content::Plain(&one).checksum(), Content::Plain(&other).checksum());
        assert_eq!((Content::Plain(&one).is_in(&path), Content::Plain(&other).is_in(&path)), (true, false));
    }

    #[test]
    fn what_was_packed_comes_back() {
        let zstd = zstd::bulk::compress(b"a library", 1).unwrap();
        let packed = Packed { zstd: &zstd, bytes: 9, checksum: crc32fast::hash(b"a library") };
        assert_eq!(&*Content::Packed(packed).unpacked().unwrap(), b"a library");
        assert_eq!(Content::Packed(packed).checksum(), Content::Plain(b"a library").checksum());
    }
}
