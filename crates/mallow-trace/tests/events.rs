//! Events come back from their columns as they went in, and no bytes make the decoder panic.

use mallow_trace::{EventDecoder, EventEncoder, EventVisitor, decode_events};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::VecDeque;

/// What an encoder was told or a decoder said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Alloc { thread: u32, stack: u32, size: u64, time_us: u64, block: u32 },
    Free { thread: u32, block: u32, time_us: u64 },
    Realloc { thread: u32, old: u32, stack: u32, size: u64, time_us: u64, block: u32 },
    ReallocUnmatched { thread: u32, stack: u32, size: u64, time_us: u64, block: u32 },
    FreeUnmatched { thread: u32, time_us: u64 },
    Failed { thread: u32, stack: u32, size: u64, time_us: u64 },
}

impl Event {
    fn block_new(self) -> Option<u32> {
        match self {
            Event::Alloc { block, .. }
            | Event::Realloc { block, .. }
            | Event::ReallocUnmatched { block, .. } => Some(block),
            _ => None,
        }
    }

    fn encode(self, encoder: &mut EventEncoder) {
        match self {
            Event::Alloc { thread, stack, size, time_us, block } => {
                encoder.alloc(thread, block, stack, size, time_us)
            }
            Event::Free { thread, block, time_us } => encoder.free(thread, block, time_us),
            Event::Realloc { thread, old, stack, size, time_us, block } => {
                encoder.realloc(thread, old, block, stack, size, time_us)
            }
            Event::ReallocUnmatched { thread, stack, size, time_us, block } => {
                encoder.realloc_unmatched(thread, block, stack, size, time_us)
            }
            Event::FreeUnmatched { thread, time_us } => encoder.free_unmatched(thread, time_us),
            Event::Failed { thread, stack, size, time_us } => encoder.failed(thread, stack, size, time_us),
        }
    }
}

/// Gives the ids that the writer gave, and keeps what it is told.
#[derive(Default)]
struct Twin {
    blocks: VecDeque<u32>,
    seen: Vec<Event>,
}

impl EventVisitor for Twin {
    fn alloc(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) -> u32 {
        let block = self.blocks.pop_front().unwrap_or(0);
        self.seen.push(Event::Alloc { thread, stack, size, time_us, block });
        block
    }
    fn free(&mut self, thread: u32, block: u32, time_us: u64) {
        self.seen.push(Event::Free { thread, block, time_us });
    }
    fn realloc(&mut self, thread: u32, old: u32, stack: u32, size: u64, time_us: u64) -> u32 {
        let block = self.blocks.pop_front().unwrap_or(0);
        self.seen.push(Event::Realloc { thread, old, stack, size, time_us, block });
        block
    }
    fn realloc_unmatched(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) -> u32 {
        let block = self.blocks.pop_front().unwrap_or(0);
        self.seen.push(Event::ReallocUnmatched { thread, stack, size, time_us, block });
        block
    }
    fn free_unmatched(&mut self, thread: u32, time_us: u64) {
        self.seen.push(Event::FreeUnmatched { thread, time_us });
    }
    fn failed(&mut self, thread: u32, stack: u32, size: u64, time_us: u64) {
        self.seen.push(Event::Failed { thread, stack, size, time_us });
    }
}

/// Mostly near one another, so that every prediction is met; sometimes anything.
fn id() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0..6u32, 1 => 30..40u32, 1 => any::<u32>()]
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0..5u64, 1 => any::<u64>()]
}

fn event() -> impl Strategy<Value = Event> {
    let parts = (0..9u8, id(), id(), id(), id(), number(), number());
    parts.prop_map(|(kind, thread, stack, block, old, size, time_us)| match kind {
        0..3 => Event::Alloc { thread, stack, size, time_us, block },
        3..6 => Event::Free { thread, block, time_us },
        6 => Event::Realloc { thread, old, stack, size, time_us, block },
        7 if size % 2 == 0 => Event::ReallocUnmatched { thread, stack, size, time_us, block },
        7 => Event::FreeUnmatched { thread, time_us },
        _ => Event::Failed { thread, stack, size, time_us },
    })
}

proptest! {
    #[test]
    fn events_come_back_from_every_chunk(chunks in vec(vec(event(), 0..200), 1..4)) {
        let (mut encoder, mut decoder) = (EventEncoder::new(), EventDecoder::new());
        for events in &chunks {
            events.iter().for_each(|event| event.encode(&mut encoder));
            prop_assert_eq!(encoder.len(), events.len());
            let mut payload = Vec::new();
            encoder.take(&mut payload);
            prop_assert_eq!(encoder.len(), 0);
            let blocks = events.iter().filter_map(|event| event.block_new()).collect();
            let mut twin = Twin { blocks, seen: Vec::new() };
            prop_assert_eq!(decoder.decode(&payload, &mut twin), Ok(events.len() as u64));
            prop_assert_eq!(&twin.seen, events);
        }
    }

    /// Returns whether the two events of a block are written in one call or in two cannot be told from the bytes.
    #[test]
    fn a_temporary_is_written_as_its_two_events(events in vec((event(), number()), 0..200)) {
        let (mut one, mut two) = (EventEncoder::new(), EventEncoder::new());
        for (event, freed_us) in events {
            event.encode(&mut two);
            if let Event::Alloc { thread, stack, size, time_us, block } = event {
                Event::Free { thread, block, time_us: freed_us }.encode(&mut two);
                one.temporary(thread, block, stack, size, [time_us, freed_us]);
            } else {
                event.encode(&mut one);
            }
        }
        prop_assert_eq!(one.len(), two.len());
        let mut payloads = [Vec::new(), Vec::new()];
        one.take(&mut payloads[0]);
        two.take(&mut payloads[1]);
        prop_assert_eq!(&payloads[0], &payloads[1]);
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in vec(any::<u8>(), 0..400)) {
        let _ = decode_events(&bytes, &mut Twin::default());
    }

    #[test]
    fn damaged_events_do_not_panic_and_cut_ones_are_errors(
        events in vec(event(), 1..100), at in any::<prop::sample::Index>(), byte in any::<u8>(),
    ) {
        let mut encoder = EventEncoder::new();
        events.iter().for_each(|event| event.encode(&mut encoder));
        let mut payload = Vec::new();
        encoder.take(&mut payload);
        let at = at.index(payload.len());
        prop_assert!(decode_events(&payload[..at], &mut Twin::default()).is_err());
        payload[at] = byte;
        let _ = decode_events(&payload, &mut Twin::default());
    }
}

#[test]
fn the_documented_events_have_the_documented_bytes() {
    let mut encoder = EventEncoder::new();
    encoder.alloc(0, 0, 7, 24, 1000);
    encoder.free(0, 0, 1001);
    let mut payload = Vec::new();
    encoder.take(&mut payload);
    let stated = [2, 3, 2, 0, 1, 1, 0, 0x06, 0xd8, 0x09, 0xd0, 0x0f, 7, 0x18];
    assert_eq!(payload, stated);
}

#[test]
fn a_loop_that_repeats_itself_costs_one_byte_per_event() {
    let mut encoder = EventEncoder::new();
    for time_us in 0..1000 {
        for (stack, size) in [(3, 16), (9, 400), (4, 0)] {
            encoder.alloc(0, 0, stack, size, time_us);
            encoder.free(0, 0, time_us);
        }
    }
    assert!(encoder.raw_bytes() < 6000 + 50, "{} bytes", encoder.raw_bytes());
}

#[test]
fn a_chunk_of_more_events_than_advised_loses_none() {
    let (mut encoder, mut twin) = (EventEncoder::new(), Twin::default());
    let events: Vec<Event> = (0..200_000u64)
        .map(|i| {
            // Every column's longest entries, and short ones between.
            let id = if i % 3 == 0 { u32::MAX - i as u32 } else { i as u32 };
            let time_us = if i % 2 == 0 { 1 << 63 } else { i };
            Event::Alloc { thread: id, stack: id, size: u64::MAX - i, time_us, block: id }
        })
        .collect();
    events.iter().for_each(|event| event.encode(&mut encoder));
    let mut payload = Vec::new();
    encoder.take(&mut payload);
    twin.blocks = events.iter().filter_map(|event| event.block_new()).collect();
    assert_eq!(decode_events(&payload, &mut twin), Ok(events.len() as u64));
    assert!(twin.seen == events);
}
