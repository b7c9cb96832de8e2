//! Events in columns.
//!
//! ```text
//! payload   varint events | varint length of each of the six columns | ops | times | threads | stacks | sizes | blocks
//! op byte   bits 0-2 kind | bits 3-4 time | bits 5-7 by kind
//! ```
//!
//! | kind | | bits 5-7 |
//! |---|---|---|
//! | 0 | allocation | site |
//! | 1 | free | block |
//! | 2 | realloc of a live block; the block stands in its column | site |
//! | 3 | realloc of a block not seen | site |
//! | 4 | free of a block not seen | 0 |
//! | 5 | failed call | site |
//! | 6 | not an event: the next ones are of the thread in bits 3-7, or in the column when they say 31 | |
//!
//! *Time*: 0 to 2 µs since the event before; 3: the signed difference stands in its column. *Site*: the low two bits say which stack:
//! 0 the one that last followed the thread's latest stack, 1 the one that followed before that, 2 see the column; the high
//! bit says that the size is not the last one at that stack but stands in its column. *Block*: 0 the thread's latest allocation; 1, 2
//! the neighbour above or below of the thread's latest freed block; 3 as far from the latest allocation as
//! the last free after a block of that stack was; 4 the neighbour below the latest allocation; 7 the column holds the signed
//! difference to the latest allocation.
//!
//! What a prediction remembers is forgotten at each chunk's start: time, stacks, sizes and blocks are then 0, and
//! a thread is always named first. Memory is a table of fixed size addressed by the stack id's low bits, the same on both sides.
//!
//! Blocks have no ids in the columns: whoever replays events gives ids as the writer did (last freed, first
//! reused) and tells the decoder, so block ids are right only when a process's chunks are replayed from the first. Threads,
//! stacks, sizes and times of a chunk need no other chunk.
//!
//! An example: thread 0 allocates 24 bytes at stack 7 after 1000 µs and frees them 1 µs later.
//!
//! ```text
//! 02                  events
//! 03 02 00 01 01 00   lengths of the columns
//! 06 D8 09            ops: thread 0; allocation, time in column, stack and size in columns; free, 1 µs, latest
//! D0 0F               times: +1000
//! 07                  stacks
//! 18                  sizes
//! ```

mod decode;
mod encode;
mod predict;

pub use decode::{EventDecoder, EventVisitor, decode_events};
pub use encode::EventEncoder;

/// After how many events a writer should take a chunk.
pub const EVENTS_PER_CHUNK: usize = 65_536;

const ALLOC: u8 = 0;
const FREE: u8 = 1;
const REALLOC: u8 = 2;
const REALLOC_UNMATCHED: u8 = 3;
const FREE_UNMATCHED: u8 = 4;
const FAILED: u8 = 5;
const THREAD: u8 = 6;

/// In the time bits: see the column. Smaller differences are in the bits themselves.
const TIME_COLUMN: u8 = 3;
/// In a thread op: see the column.
const THREAD_COLUMN: u8 = 31;

/// In the site bits.
const STACK_NEXT: u8 = 0;
const STACK_NEXT_OLDER: u8 = 1;
const STACK_COLUMN: u8 = 2;
const SIZE_COLUMN: u8 = 4;

/// In a free's block bits.
const BLOCK_LATEST: u8 = 0;
const BLOCK_FREED_ABOVE: u8 = 1;
const BLOCK_FREED_BELOW: u8 = 2;
const BLOCK_AS_BEFORE: u8 = 3;
const BLOCK_LATEST_BELOW: u8 = 4;
const BLOCK_COLUMN: u8 = 7;
