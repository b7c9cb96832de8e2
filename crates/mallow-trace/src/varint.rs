//! Reading and writing the pieces of a payload: varints, signed varints, strings.
use std::fmt;

/// An error in a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Its offset, in bytes from the payload's start.
    pub offset: usize,
    /// What was expected there.
    pub expected: &'static str,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {} at byte {} of the payload", self.expected, self.offset)
    }
}

impl std::error::Error for DecodeError {}

/// Appends a varint.
#[inline]
pub(crate) fn put(out: &mut Vec<u8>, value: u64) {
    if value > SHORT_MAX {
        return put_long(out, value);
    }
    // Copies four bytes at once: a copy of unknown length costs a call.
    let (bytes, length) = short_varint(value as u32);
    let end = out.len() + length;
    out.extend_from_slice(&bytes);
    out.truncate(end);
}

/// The largest value whose varint is at most four bytes long.
pub(crate) const SHORT_MAX: u64 = (1 << 28) - 1;

/// Returns a varint of at most [`SHORT_MAX`], and its length. Lengths of one to four bytes alternate unpredictably in
/// an event's columns, so they share one path: a writer stores all four bytes and advances by the length.
#[inline(always)]
pub(crate) const fn short_varint(value: u32) -> ([u8; 4], usize) {
    let spread = value & 0x7f | (value & 0x3f80) << 1 | (value & 0x1f_c000) << 2 | (value & 0xfe0_0000) << 3;
    let length = (38 - (value | 1).leading_zeros()) / 7;
    let marks = 0x0080_8080 & ((1 << (8 * (length - 1))) - 1);
    ((spread | marks).to_le_bytes(), length as usize)
}

#[cold]
fn put_long(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a string.
pub(crate) fn put_str(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, text.as_bytes());
}

/// Appends the length, then the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Maps signed numbers near zero, kept in wrapping arithmetic, to small unsigned ones.
#[inline]
pub(crate) const fn zigzag(value: u64) -> u64 {
    (value << 1) ^ ((value as i64 >> 63) as u64)
}

/// Undoes [`zigzag`].
#[inline]
pub(crate) const fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

/// Reads a payload sequentially.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The offset of `bytes` in the payload, for errors.
    base: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0, base: 0 }
    }

    /// Returns an error at the current offset.
    pub(crate) fn expected(&self, expected: &'static str) -> DecodeError {
        DecodeError { offset: self.base + self.at, expected }
    }

    #[inline]
    pub(crate) fn varint(&mut self, expected: &'static str) -> Result<u64, DecodeError> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(u64::from(byte))
            }
            _ => self.varint_long(expected),
        }
    }

    fn varint_long(&mut self, expected: &'static str) -> Result<u64, DecodeError> {
        let mut value = 0u64;
        for (i, &byte) in self.bytes[self.at..].iter().take(10).enumerate() {
            let part = u64::from(byte & 0x7f);
            if i == 9 && part > 1 {
                break;
            }
            value |= part << (7 * i);
            if byte < 0x80 {
                self.at += i + 1;
                return Ok(value);
            }
        }
        Err(self.expected(expected))
    }

    /// A varint that fits 32 bits.
    #[inline]
    pub(crate) fn varint32(&mut self, expected: &'static str) -> Result<u32, DecodeError> {
        let start = *self;
        u32::try_from(self.varint(expected)?).map_err(|_| start.expected(expected))
    }

    /// A signed varint in wrapping arithmetic.
    #[inline]
    pub(crate) fn signed(&mut self, expected: &'static str) -> Result<u64, DecodeError> {
        self.varint(expected).map(unzigzag)
    }

    /// Reads a number of entries, each of which has at least `entry_bytes` of the rest, so that a damaged number
    /// reserves no memory.
    pub(crate) fn count(&mut self, entry_bytes: usize, expected: &'static str) -> Result<usize, DecodeError> {
        let start = *self;
        let count = self.varint(expected)?;
        let left = (self.bytes.len() - self.at) / entry_bytes.max(1);
        usize::try_from(count).ok().filter(|&count| count <= left).ok_or(start.expected(expected))
    }

    pub(crate) fn bytes(&mut self, expected: &'static str) -> Result<&'a [u8], DecodeError> {
        let length = self.count(1, expected)?;
        let bytes = &self.bytes[self.at..self.at + length];
        self.at += length;
        Ok(bytes)
    }

    pub(crate) fn string(&mut self, expected: &'static str) -> Result<String, DecodeError> {
        let start = *self;
        let bytes = self.bytes(expected)?;
        std::str::from_utf8(bytes).map(String::from).map_err(|_| start.expected(expected))
    }

    /// The next `length` bytes as a reader of their own.
    pub(crate) fn part(&mut self, length: usize, expected: &'static str) -> Result<Reader<'a>, DecodeError> {
        let end = self.at.checked_add(length).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or(self.expected(expected))?;
        let part = Reader { bytes: &self.bytes[self.at..end], at: 0, base: self.base + self.at };
        self.at = end;
        Ok(part)
    }

    /// Returns whether everything has been read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// `count` entries, each read by `read`.
    pub(crate) fn list<T>(
        &mut self,
        entry_bytes: usize,
        expected: &'static str,
        mut read: impl FnMut(&mut Reader<'a>) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let count = self.count(entry_bytes, expected)?;
        // An entry may be larger in memory than in the file: grow with what was really read.
        let mut list = Vec::with_capacity(count.min(4096));
        for _ in 0..count {
            list.push(read(self)?);
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_at_every_length() {
        let mut bytes = Vec::new();
        let values: Vec<u64> =
            (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit]).chain([u64::MAX]).collect();
        values.iter().for_each(|&value| put(&mut bytes, value));
        let mut reader = Reader::new(&bytes);
        for &value in &values {
            assert_eq!(reader.varint("a number"), Ok(value));
            assert_eq!(unzigzag(zigzag(value)), value);
        }
        assert_eq!(reader.varint("a number"), Err(DecodeError { offset: bytes.len(), expected: "a number" }));
    }

    #[test]
    fn numbers_that_pass_64_bits_and_endless_ones_are_errors() {
        for bytes in [&[0xff; 9][..], &[0xff; 12], &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]]
        {
            assert!(Reader::new(bytes).varint("a number").is_err());
        }
    }

    #[test]
    fn a_count_beyond_the_bytes_that_are_there_is_an_error() {
        let mut bytes = Vec::new();
        put(&mut bytes, 1 << 60);
        bytes.extend([0; 100]);
        assert!(Reader::new(&bytes).list(1, "a list", |reader| reader.varint("x")).is_err());
        assert!(Reader::new(&bytes).string("a string").is_err());
    }
}
