//! A processor's ring: pages that the kernel writes records into, and that are read in place.
//!
//! The layout is that of `perf_event_mmap_page` in Linux's `perf_event.h`: one page with `data_head` and `data_tail`, then a power of two
//! of pages with records.

use crate::attr::Event;
use linux_perf_event_reader::RawData;
use memmap2::MmapRaw;
use perf_event_open_sys::bindings::perf_event_mmap_page;
use std::io;
use std::mem::offset_of;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE_BYTES: usize = 4096;
/// Bytes of a record's head: kind, flags, size.
const HEAD_BYTES: u64 = 8;

/// A ring with its event.
#[derive(Debug)]
pub(crate) struct Ring {
    pub(crate) event: Event,
    map: MmapRaw,
    data_bytes: u64,
}

/// A record in a ring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    pub(crate) kind: u32,
    pub(crate) misc: u16,
    /// The record after its header.
    pub(crate) body: RawData<'a>,
    /// The start of the next one.
    pub(crate) end: u64,
}

impl Ring {
    /// Maps an event's ring of a power of two of pages.
    ///
    /// # Errors
    /// The system's error, with the event.
    pub(crate) fn map(event: Event, data_bytes: usize) -> Result<Ring, (Event, io::Error)> {
        match memmap2::MmapOptions::new().len(PAGE_BYTES + data_bytes).map_raw(event.file.as_raw_fd()) {
            Ok(map) => Ok(Ring { event, map, data_bytes: data_bytes as u64 }),
            Err(error) => Err((event, error)),
        }
    }

    /// A word of the first page.
    fn field(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the first page is a `perf_event_mmap_page`, in which both fields are aligned words; the kernel and we only use them as
        // atomics, and the mapping lives as long as `self`.
        unsafe { &*self.map.as_ptr().add(offset).cast::<AtomicU64>() }
    }

    /// Up to where records are written.
    pub(crate) fn head(&self) -> u64 {
        self.field(offset_of!(perf_event_mmap_page, data_head)).load(Ordering::Acquire)
    }

    /// Up to where records were read.
    pub(crate) fn tail(&self) -> u64 {
        self.field(offset_of!(perf_event_mmap_page, data_tail)).load(Ordering::Relaxed)
    }

    /// Releases the space up to here.
    pub(crate) fn release(&mut self, tail: u64) {
        self.field(offset_of!(perf_event_mmap_page, data_tail)).store(tail, Ordering::Release);
    }

    /// Returns the maximal number of bytes of records.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// The record that begins at `at`; none when there is no whole one before `head`.
    pub(crate) fn record(&self, at: u64, head: u64) -> Option<Record<'_>> {
        let left = head.checked_sub(at).filter(|left| (HEAD_BYTES..=self.data_bytes).contains(left))?;
        let start = self.bytes(at, HEAD_BYTES).as_slice();
        let word = u64::from_le_bytes(start.as_ref().try_into().ok()?);
        let size = word >> 48;
        if size < HEAD_BYTES || size > left {
            return None;
        }
        Some(Record {
            kind: word as u32,
            misc: (word >> 32) as u16,
            body: self.bytes(at + HEAD_BYTES, size - HEAD_BYTES),
            end: at + size,
        })
    }

    /// Bytes between tail and head, at most as many as the ring has.
    fn bytes(&self, at: u64, count: u64) -> RawData<'_> {
        let (from, count) = ((at % self.data_bytes) as usize, count as usize);
        let first = count.min(self.data_bytes as usize - from);
        let slice = |from: usize, count: usize| {
            // SAFETY: the pages behind the first are mapped for `data_bytes`, and `from + count` is within. The kernel does not write
            // between tail and head, and the tail is moved by `release` only, which takes `self` exclusively.
            unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(PAGE_BYTES + from), count) }
        };
        if first == count {
            RawData::Single(slice(from, count))
        } else {
            RawData::Split(slice(from, first), slice(0, count - first))
        }
    }
}
