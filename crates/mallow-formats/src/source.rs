//! A file's decompressed bytes, in memory bounded by the file's size.

use crate::lines::{Lines, is_cut};
use crate::{Format, ImportError};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::rc::Rc;

/// Enough to recognise the format.
const BEGINNING_BYTES: u64 = 8 << 10;
/// gzip compresses at most 1,032 bytes into one. A file that expands to more than this many times its size is a decompression bomb.
const UNPACKED_PER_BYTE_MAX: u64 = 1100;
/// What any file may expand to.
const UNPACKED_MIN: u64 = 1 << 20;

/// A file that is about to be read.
pub(crate) struct Source<'a> {
    beginning: Vec<u8>,
    rest: Box<dyn BufRead + 'a>,
    is_packed: bool,
    plain: Option<PlainFile>,
    /// Whether the compressed stream ended before its end.
    torn: Rc<Cell<bool>>,
}

impl<'a> Source<'a> {
    /// Opens a file.
    pub(crate) fn of_file(path: &Path) -> io::Result<Source<'static>> {
        let file = mallow_files::open_input(path)?;
        let metadata = file.metadata()?;
        let again = file.try_clone()?;
        let mut source = Source::of(BufReader::with_capacity(1 << 16, file), metadata.len())?;
        if metadata.is_file() && !source.is_packed {
            source.plain = Some(PlainFile { file: again, bytes: metadata.len() });
        }
        Ok(source)
    }

    /// Uses bytes in memory.
    pub(crate) fn of_bytes(bytes: &'a [u8]) -> io::Result<Source<'a>> {
        Source::of(Cursor::new(bytes), bytes.len() as u64)
    }

    fn of(mut stored: impl BufRead + 'a, stored_bytes: u64) -> io::Result<Source<'a>> {
        let mut magic = Vec::new();
        stored.by_ref().take(4).read_to_end(&mut magic)?;
        let stored = Cursor::new(magic.clone()).chain(stored);
        let is_packed = matches!(magic[..], [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd]);
        let mut rest: Box<dyn BufRead + 'a> = match magic[..] {
            [0x1f, 0x8b, ..] => Box::new(BufReader::new(flate2::bufread::MultiGzDecoder::new(stored))),
            [0x28, 0xb5, 0x2f, 0xfd] => {
                Box::new(BufReader::new(zstd::stream::read::Decoder::with_buffer(stored)?))
            }
            _ => Box::new(stored),
        };
        let unpacked_max = UNPACKED_MIN.max(stored_bytes.saturating_mul(UNPACKED_PER_BYTE_MAX));
        if is_packed {
            rest = Box::new(BufReader::new(Bounded { packed: rest, left: unpacked_max, unpacked_max }));
        }
        let mut beginning = Vec::new();
        let torn = Rc::new(Cell::new(false));
        match rest.by_ref().take(BEGINNING_BYTES).read_to_end(&mut beginning) {
            // What was unpacked before is there.
            Err(error) if is_cut(&error) && !beginning.is_empty() => torn.set(true),
            read => drop(read?),
        }
        Ok(Source { beginning, rest, is_packed, plain: None, torn })
    }

    /// Returns the first decompressed bytes.
    pub(crate) fn beginning(&self) -> &[u8] {
        &self.beginning
    }

    /// Returns the format, by the first bytes.
    pub(crate) fn format(&self) -> Result<Format, ImportError> {
        let unknown = || ImportError::Unknown { looks_like: mallow_trace::looks_like(&self.beginning) };
        Format::of_beginning(&self.beginning).ok_or_else(unknown)
    }

    /// Returns all decompressed bytes.
    pub(crate) fn whole(mut self, format: Format) -> Result<Vec<u8>, ImportError> {
        let mut bytes = self.beginning;
        match self.rest.read_to_end(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                Err(ImportError::Unsupported { format, reason: error.to_string() })
            }
            Err(error) if is_cut(&error) => {
                self.torn.set(true);
                Ok(bytes)
            }
            read => Ok(read.map(|_| bytes)?),
        }
    }

    /// Returns the decompressed bytes as a stream.
    pub(crate) fn reader(self) -> impl BufRead + 'a {
        Cursor::new(self.beginning).chain(self.rest)
    }

    /// Returns the file if it is not compressed: its bytes can be read at several positions at once.
    pub(crate) fn plain_file(&mut self) -> Option<PlainFile> {
        self.plain.take()
    }

    /// Returns whether the compressed stream ended before its end, to be asked when everything has been read.
    pub(crate) fn torn(&self) -> Rc<Cell<bool>> {
        Rc::clone(&self.torn)
    }

    /// Returns the decompressed lines, one at a time.
    pub(crate) fn lines(self, format: Format) -> Lines<'a> {
        let torn = self.torn();
        Lines::new(Box::new(self.reader()), format).until_cut(torn)
    }
}

/// The decompressed stream of a file, up to a limit.
struct Bounded<R> {
    packed: R,
    left: u64,
    unpacked_max: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.packed.read(buffer)?;
        let Some(left) = self.left.checked_sub(read as u64) else {
            let reason =
                format!("it unpacks to more than {} bytes, far more than its size allows", self.unpacked_max);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
        };
        self.left = left;
        Ok(read)
    }
}

/// A file that is not compressed.
pub(crate) struct PlainFile {
    file: File,
    bytes: u64,
}

impl PlainFile {
    /// Returns its size when it was opened.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns a reader from a position on, independent of other readers.
    pub(crate) fn reader_at(&self, offset: u64) -> io::Result<ReaderAt> {
        Ok(ReaderAt { file: self.file.try_clone()?, offset })
    }
}

/// Reads a file at its own position.
pub(crate) struct ReaderAt {
    file: File,
    offset: u64,
}

impl ReaderAt {
    /// Continues at another position.
    pub(crate) fn go_to(&mut self, offset: u64) {
        self.offset = offset;
    }
}

impl Read for ReaderAt {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = read_at(&self.file, buffer, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(not(unix))]
fn read_at(_: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
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
    fn a_trap_is_refused_line_by_line_and_as_a_stream() {
        let stored = zstd::encode_all(&b"t 1 0\n".repeat(8 << 20)[..], 19).unwrap();
        let mut lines = Source::of_bytes(&stored).unwrap().lines(Format::Heaptrack);
        let error = loop {
            match lines.next() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("the trap was read to its end"),
                Err(error) => break error,
            }
        };
        assert!(error.to_string().contains("unpacks to more than"), "{error}");
        let read = io::copy(&mut Source::of_bytes(&stored).unwrap().reader(), &mut io::sink());
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn a_torn_archive_is_read_up_to_its_end_and_known_to_be_torn() {
        let text = b"main;work 12\n".repeat(20_000);
        let stored = gzip(&text);
        for (length, is_torn) in [(stored.len() / 2, true), (stored.len(), false)] {
            let source = Source::of_bytes(&stored[..length]).unwrap();
            let torn = source.torn();
            let read = source.whole(Format::Folded).unwrap();
            assert!(text.starts_with(&read) && !read.is_empty());
            assert_eq!((torn.get(), read.len() < text.len()), (is_torn, is_torn));
        }
    }
}
