//! The bytes of one column while they are gathered.
//!
//! Room for an event's longest entry is made once for all columns before the event is written, so that writing is a store and
//! an addition: no entry can make a column grow.

use crate::varint::{SHORT_MAX, short_varint};

/// The longest entry of one event in one column, in bytes: a varint of 64 bits.
const ENTRY_BYTES_MAX: usize = 10;

/// A column. The bytes after `used` are free.
#[derive(Debug)]
pub(super) struct Column {
    bytes: Vec<u8>,
    used: usize,
}

impl Column {
    /// An empty column with room for a number of events.
    pub(super) fn new(events: usize) -> Column {
        Column { bytes: vec![0; events * ENTRY_BYTES_MAX], used: 0 }
    }

    /// Makes room for a number of events in all.
    pub(super) fn grow(&mut self, events: usize) {
        self.bytes.resize(events * ENTRY_BYTES_MAX, 0);
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    pub(super) fn clear(&mut self) {
        self.used = 0;
    }

    #[inline(always)]
    pub(super) fn push(&mut self, byte: u8) {
        self.bytes[self.used] = byte;
        self.used += 1;
    }

    /// Appends a varint.
    #[inline(always)]
    pub(super) fn put(&mut self, value: u64) {
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
