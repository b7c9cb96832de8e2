//! What the program maps and unmaps itself, as blocks.
//!
//! No event waits for another one here, as frees of blocks do: between an unmapping and the next mapping of its addresses lies a system
//! call, which takes longer than processors disagree about the time.

use super::Pairing;
use crate::mapped::{Piece, Released};
use mallow_profile::{BlockId, StackId, ThreadIndex};
use mallow_wire::event::{MAPPING_NESTED, Mapping};

/// A call that may take pieces away, which has begun.
#[derive(Debug, Default)]
pub(super) struct Begun {
    /// Those pieces. They are in no table, since another thread may get their addresses before this call ends.
    pieces: Vec<Piece>,
    /// Whether anything that is counted was there.
    is_known: bool,
}

/// Handlers within handlers that are followed; what lies deeper is damage.
const NESTED_MAX: usize = 64;

/// A record of the program's mappings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MappingEvent {
    /// The page, and in its low bits what happened.
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) stack: StackId,
    pub(crate) thread: ThreadIndex,
    pub(crate) time_us: u64,
}

impl Pairing {
    /// Adds a record; one without meaning, of a damaged ring, is ignored.
    pub(crate) fn mapping(&mut self, event: MappingEvent) {
        let time_us = self.advance(event.time_us);
        // The kernel maps nothing of no size, but a damaged ring may say so.
        let event = MappingEvent { size: event.size.max(1), time_us, ..event };
        let MappingEvent { address, size, stack, thread, .. } = event;
        let start = Mapping::page_of(address);
        match Mapping::of(address) {
            Some(Mapping::Mapped) => {
                self.replace(thread, start, size, time_us);
                self.map(event, None);
            }
            Some(Mapping::Reserved) => self.replace(thread, start, size, time_us),
            Some(Mapping::Leaving) => {
                self.end_lost(thread, address);
                let pieces = self.mapped.take(start, size);
                let is_known = !pieces.is_empty();
                self.unmapping_of(thread).push(Begun { pieces, is_known });
            }
            Some(Mapping::Staying) => {
                self.end_lost(thread, address);
                let is_known = self.mapped.is_mapped(start);
                self.unmapping_of(thread).push(Begun { pieces: Vec::new(), is_known });
            }
            Some(Mapping::Unmapped) => {
                let begun = self.begun_unmapping(thread);
                self.release(thread, &begun.pieces, time_us);
            }
            Some(Mapping::Remapped) => self.remapped(event),
            Some(Mapping::Kept) => self.put_back(thread),
            Some(Mapping::RemapFailed) => {
                self.put_back(thread);
                self.failed(thread, stack, size, time_us);
            }
            None => {}
        }
    }

    fn unmapping_of(&mut self, thread: ThreadIndex) -> &mut Vec<Begun> {
        let at = thread.0 as usize;
        if self.unmapping.len() <= at {
            self.unmapping.resize_with(at + 1, Vec::new);
        }
        &mut self.unmapping[at]
    }

    fn begun_unmapping(&mut self, thread: ThreadIndex) -> Begun {
        self.unmapping_of(thread).pop().unwrap_or_default()
    }

    /// Another call begins: those before it whose end was lost, unless it interrupts them, have left all where it was.
    fn end_lost(&mut self, thread: ThreadIndex, address: u64) {
        let is_nested = address & MAPPING_NESTED != 0;
        while (!is_nested && !self.unmapping_of(thread).is_empty())
            || self.unmapping_of(thread).len() >= NESTED_MAX
        {
            self.put_back(thread);
        }
    }

    fn put_back(&mut self, thread: ThreadIndex) {
        let begun = self.begun_unmapping(thread);
        self.mapped.put_back(&begun.pieces);
    }

    /// Whatever is mapped in a range is gone.
    fn replace(&mut self, thread: ThreadIndex, start: u64, size: u64, time_us: u64) {
        let pieces = self.mapped.take(start, size);
        self.release(thread, &pieces, time_us);
    }

    fn release(&mut self, thread: ThreadIndex, pieces: &[Piece], time_us: u64) {
        let released = self.mapped.release(pieces);
        self.apply(thread, released, time_us);
    }

    fn apply(&mut self, thread: ThreadIndex, released: Vec<Released>, time_us: u64) {
        for one in released {
            match one {
                Released::Whole(block) => self.free_block(thread, block, time_us),
                Released::Part { block, stack, bytes_left, mapping } => {
                    let left = self.moved(thread, block, stack, bytes_left, time_us);
                    self.mapped.set_block(mapping, left);
                }
            }
        }
    }

    /// A range is mapped; with `before`, it is what became of that block.
    fn map(&mut self, event: MappingEvent, before: Option<BlockId>) {
        let MappingEvent { address, size, stack, thread, time_us } = event;
        let block = match before {
            Some(before) => self.moved(thread, before, stack, size, time_us),
            None => self.born(thread, stack, size, time_us),
        };
        self.mapped.insert(Mapping::page_of(address), size, block, stack);
    }

    /// `mremap` has returned. What is not counted stays so: it may be a reservation.
    fn remapped(&mut self, event: MappingEvent) {
        let MappingEvent { address, size, thread, time_us, .. } = event;
        let begun = self.begun_unmapping(thread);
        self.replace(thread, Mapping::page_of(address), size, time_us);
        let mut released = self.mapped.release(&begun.pieces);
        let whole = released.iter().position(|one| matches!(one, Released::Whole(_)));
        let before = whole.map(|at| released.remove(at));
        self.apply(thread, released, time_us);
        match before {
            Some(Released::Whole(block)) => self.map(event, Some(block)),
            _ if begun.is_known => self.map(event, None),
            _ => {}
        }
    }
}
