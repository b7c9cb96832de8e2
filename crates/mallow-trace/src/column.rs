//! The bytes of one column, or row, while they are gathered.
//!
//! Room for the longest entries is made before any is written, so that writing is a store and
//! an addition: no entry can make a column grow.

use crate::varint::{SHORT_MAX, short_varint};

/// The longest entry, in bytes: a varint of 64 bits.
const ENTRY_BYTES_MAX: usize = 10;

/// A column. The bytes after `used` are free.
#[derive(Debug)]
pub(crate) struct Column {
    bytes: Vec<u8>,
    used: usize,
}

impl Column {
    /// An empty column with room for a number of entries. Memory that is not written is address space only.
    pub(crate) fn new(entries: usize) -> Column {
        Column { bytes: vec![0; entries * ENTRY_BYTES_MAX], used: 0 }
    }

    /// Makes room for a number of entries in all.
    pub(crate) fn grow(&mut self, entries: usize) {
        self.bytes.resize(entries * ENTRY_BYTES_MAX, 0);
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, byte: u8) {
        self.bytes[self.used] = byte;
        self.used += 1;
    }

    /// Appends a varint.
    #[inline(always)]
    pub(crate) fn put(&mut self, value: u64) {
        if value > SHORT_MAX {
            return self.put_long(value);
        }
        let (bytes, length) = short_varint(value as u32);
        self.bytes[self.used..self.used + 4].copy_from_slice(&bytes);
        self.used += length;
    }

    #[cold]
    fn put_long(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }
}
