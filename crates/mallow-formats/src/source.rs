//! A file's bytes with its compression undone, in memory bounded by the file's size.

use crate::lines::Lines;
use crate::{Format, ImportError};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

/// Enough to tell the format.
const BEGINNING_BYTES: u64 = 8 << 10;
/// gzip packs at most 1,032 bytes into one. A file that unpacks to more than this many times its size holds nothing but a trap.
const UNPACKED_PER_BYTE_MAX: u64 = 1100;
/// What any file may unpack to.
const UNPACKED_MIN: u64 = 1 << 20;

/// A file that is about to be read.
pub(crate) struct Source<'a> {
    beginning: Vec<u8>,
    rest: Box<dyn BufRead + 'a>,
    unpacked_max: u64,
}

impl<'a> Source<'a> {
    /// Opens a file.
    pub(crate) fn of_file(path: &Path) -> io::Result<Source<'static>> {
        let file = File::open(path)?;
        let stored_bytes = file.metadata()?.len();
        Source::of(BufReader::with_capacity(1 << 16, file), stored_bytes)
    }

    /// Takes bytes that are in memory.
    pub(crate) fn of_bytes(bytes: &'a [u8]) -> io::Result<Source<'a>> {
        Source::of(Cursor::new(bytes), bytes.len() as u64)
    }

    fn of(mut stored: impl BufRead + 'a, stored_bytes: u64) -> io::Result<Source<'a>> {
        let mut magic = Vec::new();
        stored.by_ref().take(4).read_to_end(&mut magic)?;
        let stored = Cursor::new(magic.clone()).chain(stored);
        let mut rest: Box<dyn BufRead + 'a> = match magic[..] {
            [0x1f, 0x8b, ..] => Box::new(BufReader::new(flate2::bufread::MultiGzDecoder::new(stored))),
            [0x28, 0xb5, 0x2f, 0xfd] => {
                Box::new(BufReader::new(zstd::stream::read::Decoder::with_buffer(stored)?))
            }
            _ => Box::new(stored),
        };
        let mut beginning = Vec::new();
        rest.by_ref().take(BEGINNING_BYTES).read_to_end(&mut beginning)?;
        let unpacked_max = UNPACKED_MIN.max(stored_bytes.saturating_mul(UNPACKED_PER_BYTE_MAX));
        Ok(Source { beginning, rest, unpacked_max })
    }

    /// The first bytes, unpacked.
    pub(crate) fn beginning(&self) -> &[u8] {
        &self.beginning
    }

    /// What the file is, by how it begins.
    pub(crate) fn format(&self) -> Result<Format, ImportError> {
        let unknown = || ImportError::Unknown { looks_like: mallow_trace::looks_like(&self.beginning) };
        Format::of_beginning(&self.beginning).ok_or_else(unknown)
    }

    /// All bytes, unpacked.
    pub(crate) fn whole(self, format: Format) -> Result<Vec<u8>, ImportError> {
        let mut bytes = self.beginning;
        let left = self.unpacked_max.saturating_sub(bytes.len() as u64);
        self.rest.take(left + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > self.unpacked_max {
            let reason =
                format!("it unpacks to more than {} bytes, far more than its size allows", self.unpacked_max);
            return Err(ImportError::Unsupported { format, reason });
        }
        Ok(bytes)
    }

    /// The bytes, unpacked, as a stream.
    pub(crate) fn reader(self) -> impl BufRead + 'a {
        Cursor::new(self.beginning).chain(self.rest)
    }

    /// The lines, unpacked, one at a time.
    pub(crate) fn lines(self, format: Format) -> Lines<'a> {
        Lines::new(Box::new(self.reader()), format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn compression_is_undone() {
        let text = b"main;work 12\n".repeat(2000);
        for stored in [text.clone(), gzip(&text), zstd::encode_all(&text[..], 1).unwrap()] {
            let source = Source::of_bytes(&stored).unwrap();
            assert_eq!(source.beginning(), &text[..BEGINNING_BYTES as usize]);
            assert_eq!(source.whole(Format::Folded).unwrap(), text);
        }
    }

    #[test]
    fn a_trap_is_refused() {
        let stored = zstd::encode_all(&vec![0u8; 64 << 20][..], 19).unwrap();
        let error = Source::of_bytes(&stored).unwrap().whole(Format::Pprof).unwrap_err();
        assert!(error.to_string().contains("unpacks to more than"), "{error}");
    }

    #[test]
    fn a_torn_archive_is_an_error() {
        let stored = gzip(&b"main;work 12\n".repeat(20_000));
        let source = Source::of_bytes(&stored[..stored.len() / 2]);
        assert!(source.is_err() || source.unwrap().whole(Format::Folded).is_err());
    }
}
