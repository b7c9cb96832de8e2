//! What lies in a JVM's heaps of code: a compiled method, a piece of the interpreter, a stub.
//!
//! How the heaps are searched is HotSpot's own (`codeCache.cpp`, `heap.cpp`).

use crate::layout::Layout;
use crate::memory::{Head, Memory, bytes, int, text, word};
use mallow_wire::jvm::{ARRAY_ELEMENTS, Place};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Code is not further away from where its piece begins.
const OFFSET_MAX: u64 = 1 << 31;
/// A frame is not longer.
pub(crate) const FRAME_BYTES_MAX: u64 = 256 << 20;

/// A piece of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Blob {
    /// Where it lies.
    pub(crate) start: u64,
    /// Where its code begins.
    pub(crate) code: u64,
    /// How long its frames are, with the return address.
    pub(crate) frame_bytes: u64,
    /// How far into the code a frame is made; none where nobody says.
    pub(crate) frame_complete: Option<u64>,
    /// What it is.
    pub(crate) kind: BlobKind,
    /// The address behind it, where that is known.
    pub(crate) end: u64,
    /// What it is known by: the number of its compilation, or where a stub's name stands.
    pub(crate) mark: u64,
    /// Its own fields.
    pub(crate) head: Head,
}

/// What a piece of code is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BlobKind {
    /// A compiled method.
    Compiled,
    /// What calls a native method.
    Native,
    /// A stub, with its name.
    Stub(String),
}

/// Where the interpreter's code lies.
pub(crate) fn interpreter(layout: &Layout, memory: &impl Memory) -> Option<Range<u64>> {
    let queue = word(memory, layout.of(Place::Interpreter)).filter(|queue| *queue != 0)?;
    let start = word(memory, queue.wrapping_add(layout.of(Place::QueueBuffer)))?;
    let bytes = int(memory, queue.wrapping_add(layout.of(Place::QueueBytes)))?;
    Some(start..start.checked_add(u64::try_from(bytes).ok()?)?)
}

/// The piece of code around an address.
fn blob_at(pc: u64, layout: &Layout, memory: &impl Memory) -> Option<Blob> {
    const HEAPS_MAX: i32 = 16;
    let heaps = word(memory, layout.of(Place::Heaps))?;
    // A growable array: its length, and where its elements lie.
    let elements = layout.get(Place::ArrayElements).unwrap_or(ARRAY_ELEMENTS as u64);
    let (count, list) = (int(memory, heaps)?, word(memory, heaps.wrapping_add(elements))?);
    let mut heaps =
        (0..count.clamp(0, HEAPS_MAX) as u64).filter_map(|at| word(memory, list.wrapping_add(at * 8)));
    let start = heaps.find_map(|heap| block_in(heap, pc, layout, memory))?;
    blob(start.wrapping_add(layout.of(Place::BlockSize)), layout, memory)
}

/// Where the block of a heap begins in which an address lies.
fn block_in(heap: u64, pc: u64, layout: &Layout, memory: &impl Memory) -> Option<u64> {
    let space = heap.wrapping_add(layout.of(Place::HeapMemory));
    let low = word(memory, space.wrapping_add(layout.of(Place::SpaceLow)))?;
    let high = word(memory, space.wrapping_add(layout.of(Place::SpaceHigh)))?;
    if !(low..high).contains(&pc) {
        return None;
    }
    let shift = int(memory, heap.wrapping_add(layout.of(Place::HeapShift)))?.clamp(0, 30);
    let map = heap.wrapping_add(layout.of(Place::HeapSegments)).wrapping_add(layout.of(Place::SpaceLow));
    let segment = first_segment(word(memory, map)?, (pc - low) >> shift, memory)?;
    low.checked_add(segment << shift)
}

/// The first segment of the block that one belongs to: each says how far back the next one towards the beginning is.
fn first_segment(map: u64, segment: u64, memory: &impl Memory) -> Option<u64> {
    const FREE: u8 = 0xff;
    const WINDOW: u64 = 1 << 10;
    const WINDOWS_MAX: u32 = 256;
    let mut segment = segment;
    for _ in 0..WINDOWS_MAX {
        let from = segment.saturating_sub(WINDOW - 1);
        let window = bytes(memory, map.checked_add(from)?, segment - from + 1, WINDOW as usize)?;
        loop {
            match *window.get((segment - from) as usize)? {
                FREE => return None,
                0 => return Some(segment),
                back => segment = segment.checked_sub(u64::from(back))?,
            }
            if segment < from {
                break;
            }
        }
    }
    None
}

fn blob(start: u64, layout: &Layout, memory: &impl Memory) -> Option<Blob> {
    const NAME_BYTES_MAX: usize = 48;
    const BYTES_MAX: u64 = 1 << 30;
    let head = Head::read(start, memory);
    let int = |place: Place| head.int(layout.of(place), memory);
    let code = match layout.get(Place::CodeBegin) {
        Some(begin) => head.word(begin, memory)?,
        None => start.checked_add_signed(i64::from(int(Place::CodeOffset)?))?,
    };
    if code.checked_sub(start)? > OFFSET_MAX {
        return None;
    }
    let bytes = layout.get(Place::BlobBytes).and_then(|place| head.int(place, memory));
    let bytes = bytes.and_then(|bytes| u64::try_from(bytes).ok()).filter(|bytes| *bytes <= BYTES_MAX);
    let frame_words = u64::try_from(int(Place::BlobFrameSize)?).unwrap_or(0);
    // Two bytes since version 23, and four before; it is small.
    let frame_complete = layout.get(Place::FrameComplete).and_then(|place| head.short(place, memory));
    let name_at = head.word(layout.of(Place::BlobName), memory)?;
    let kind = match &text(memory, name_at, NAME_BYTES_MAX)?[..] {
        b"nmethod" => BlobKind::Compiled,
        name if name.starts_with(b"native n") => BlobKind::Native,
        name => BlobKind::Stub(stub_name(name)),
    };
    let mark = match &kind {
        BlobKind::Stub(_) => name_at,
        _ => u64::from(int(Place::CompileId)? as u32),
    };
    Some(Blob {
        start,
        end: start.saturating_add(bytes.unwrap_or(0)),
        code,
        frame_bytes: frame_words.saturating_mul(8).min(FRAME_BYTES_MAX),
        frame_complete: frame_complete.and_then(|offset| u64::try_from(offset as i16).ok()),
        kind,
        mark,
        head,
    })
}

/// A stub is shown as one, whatever it is for.
fn stub_name(name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name);
    let is_known = ["Stub", "RuntimeStub", "I2C/C2I"].iter().any(|start| name.starts_with(start));
    if is_known { name.into_owned() } else { format!("Stub {name}") }
}

impl Blob {
    /// What it is known by, as it is now.
    fn mark_now(&self, layout: &Layout, memory: &impl Memory) -> Option<u64> {
        let at = |place: Place| self.start.wrapping_add(layout.of(place));
        match self.kind {
            BlobKind::Stub(_) => word(memory, at(Place::BlobName)),
            _ => int(memory, at(Place::CompileId)).map(|number| u64::from(number as u32)),
        }
    }

    /// Where a frame of a compiled method says where it stands, when it returns to the handler that has the rest of it interpreted: an offset from
    /// the frame's end inside. None for another address.
    pub(crate) fn original_pc(&self, pc: u64, layout: &Layout, memory: &impl Memory) -> Option<u64> {
        /// A call and a jump; that for calls of method handles stands next to it.
        const HANDLERS_BYTES: u64 = 64;
        if self.kind != BlobKind::Compiled {
            return None;
        }
        let int = |place: Place| self.head.int(layout.of(place), memory);
        let handler = match layout.get(Place::DeoptBegin) {
            Some(begin) => self.head.word(begin, memory)?,
            None => self.start.checked_add_signed(i64::from(int(Place::DeoptOffset)?))?,
        };
        let is_it = pc.wrapping_sub(handler) < HANDLERS_BYTES;
        let offset = int(Place::OriginalPc)?;
        u64::try_from(offset).ok().filter(|offset| is_it && *offset <= self.frame_bytes)
    }
}

/// A piece of code that was met.
struct Met {
    blob: Arc<Blob>,
    looked_at_ns: u64,
    found_ns: u64,
}

/// The pieces of code of a process that were met, by where they lie.
#[derive(Default)]
pub(crate) struct Blobs {
    met: BTreeMap<u64, Met>,
}

/// How long what was read is believed before a word of it is looked at again.
pub(crate) const BELIEVED_NS: u64 = 100_000_000;
/// How long that it lies where it was found.
const FOUND_NS: u64 = 5_000_000_000;
const BLOBS_MAX: usize = 1 << 16;

impl Blobs {
    /// The piece of code around an address.
    pub(crate) fn around(
        &mut self,
        pc: u64,
        now_ns: u64,
        layout: &Layout,
        memory: &impl Memory,
    ) -> Option<Arc<Blob>> {
        let near = self.met.range(..=pc).next_back();
        let near =
            near.filter(|(_, met)| pc < met.blob.end && now_ns.saturating_sub(met.found_ns) < FOUND_NS);
        if let Some((start, mark)) = near.map(|(start, met)| (*start, met.blob.mark))
            && self.has(start, mark, now_ns, layout, memory)
        {
            return self.met.get(&start).map(|met| Arc::clone(&met.blob));
        }
        let blob = Arc::new(blob_at(pc, layout, memory)?);
        if self.met.len() >= BLOBS_MAX {
            self.met.clear();
        }
        let met = Met { blob: Arc::clone(&blob), looked_at_ns: now_ns, found_ns: now_ns };
        self.met.insert(blob.start, met);
        Some(blob)
    }

    /// Returns whether the piece with this mark is still there; asked of the process now and then. Of one that has ended nothing else is known.
    pub(crate) fn has(
        &mut self,
        start: u64,
        mark: u64,
        now_ns: u64,
        layout: &Layout,
        memory: &impl Memory,
    ) -> bool {
        let Some(met) = self.met.get_mut(&start).filter(|met| met.blob.mark == mark) else { return false };
        if now_ns.saturating_sub(met.looked_at_ns) < BELIEVED_NS {
            return true;
        }
        met.looked_at_ns = now_ns;
        let is_same = met.blob.mark_now(layout, memory).is_none_or(|now| now == mark);
        if !is_same {
            self.met.remove(&start);
        }
        is_same
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::made_up::MadeUp;

    const PLACES: [(Place, u64); 13] = [
        (Place::Heaps, 0x100),
        (Place::HeapMemory, 8),
        (Place::HeapSegments, 40),
        (Place::HeapShift, 72),
        (Place::SpaceLow, 0),
        (Place::SpaceHigh, 8),
        (Place::BlockSize, 16),
        (Place::BlobName, 0),
        (Place::BlobFrameSize, 8),
        (Place::CodeOffset, 12),
        (Place::FrameComplete, 16),
        (Place::CompileId, 20),
        (Place::BlobBytes, 24),
    ];

    /// A heap of 0x10_0000 bytes at 0x50_0000 with segments of 128 bytes, and a block from segment 3 on.
    fn heap(memory: &MadeUp, segments: &[u8]) {
        memory.put_word(0x100, 0x200);
        memory.put_int(0x200, 1);
        memory.put_word(0x208, 0x300);
        memory.put_word(0x300, 0x400);
        memory.put_word(0x408, 0x50_0000);
        memory.put_word(0x410, 0x60_0000);
        memory.put_word(0x400 + 40, 0x1_0000);
        memory.put_int(0x400 + 72, 7);
        memory.put(0x1_0000, segments);
        let blob = 0x50_0000 + 3 * 128 + 16;
        memory.put_word(blob, 0x900);
        memory.put(0x900, b"nmethod\0        ");
        memory.put_int(blob + 8, 6);
        memory.put_int(blob + 12, 64);
        memory.put(blob + 16, &13i16.to_le_bytes());
        memory.put_int(blob + 20, 77);
        memory.put_int(blob + 24, 0x8_0000);
    }

    #[test]
    fn a_block_is_found_by_the_steps_back_of_its_segments() {
        let memory = MadeUp::default();
        let layout = Layout::made_up(25, &PLACES);
        let far: Vec<u8> =
            [0xff, 0xff, 0xff].into_iter().chain((0..3000u32).map(|at| (at % 200) as u8)).collect();
        // Each 200th segment would be a beginning: it goes one back in place of that.
        let far: Vec<u8> =
            far.iter().enumerate().map(|(at, back)| if *back == 0 && at > 3 { 1 } else { *back }).collect();
        heap(&memory, &far);
        let blob = |pc| blob_at(pc, &layout, &&memory);
        let found = blob(0x50_0000 + 3 * 128 + 100).unwrap();
        assert_eq!((found.start, found.code), (0x50_0190, 0x50_01d0));
        assert_eq!((found.frame_bytes, found.frame_complete), (48, Some(13)));
        assert_eq!(found.kind, BlobKind::Compiled);
        assert_eq!(blob(0x50_0000 + 2900 * 128), Some(found));
        assert_eq!(blob(0x50_0000 + 2 * 128), None, "nothing is there");
        assert_eq!((blob(0x4f_ffff), blob(0x60_0000), blob(0x50_0000 + 3100 * 128)), (None, None, None));
    }

    /// As before version 16: two numbers, an arena (1 for none) and flags stand in front of the elements.
    #[test]
    fn heaps_are_listed_where_the_jvm_says() {
        let memory = MadeUp::default();
        heap(&memory, &[0xff, 0xff, 0xff, 0]);
        memory.put_word(0x208, 1);
        memory.put_word(0x218, 0x300);
        let found = |layout: &Layout| blob_at(0x50_0000 + 3 * 128 + 100, layout, &&memory).is_some();
        let said = [&PLACES[..], &[(Place::ArrayElements, 24)]].concat();
        assert!(found(&Layout::made_up(11, &said)));
        assert!(!found(&Layout::made_up(11, &PLACES)));
    }

    #[test]
    fn a_piece_is_searched_once_and_looked_at_now_and_then() {
        let memory = MadeUp::default();
        let layout = Layout::made_up(25, &PLACES);
        heap(&memory, &[0xff, 0xff, 0xff, 0, 1, 1, 1, 1]);
        let mut blobs = Blobs::default();
        let mut number = |pc: u64, now_ns| {
            let found = blobs.around(0x50_0000 + pc, now_ns, &layout, &&memory);
            (found.map(|blob| blob.mark), memory.reads.take())
        };
        assert!(number(0x1a0, 0).1 > 5);
        assert_eq!(number(0x300, BELIEVED_NS - 1), (Some(77), 0));
        assert_eq!(number(0x301, BELIEVED_NS), (Some(77), 1));
        memory.put_int(0x50_0190 + 20, 78);
        assert_eq!(number(0x302, 2 * BELIEVED_NS - 1), (Some(77), 0));
        assert_eq!(number(0x303, 2 * BELIEVED_NS).0, Some(78));
        assert!(number(0x304, FOUND_NS + 2 * BELIEVED_NS).1 > 5);
        assert_eq!(number(0x10, 0).0, None);
    }

    #[test]
    fn damaged_heaps_end_the_search() {
        let memory = MadeUp::default();
        let layout = Layout::made_up(25, &PLACES);
        // As many steps back as there may be, and more than that.
        heap(&memory, &[1; 8192]);
        assert_eq!(blob_at(0x50_0000 + 8191 * 128, &layout, &&memory), None);
        memory.put_int(0x200, i32::MAX);
        memory.put_word(0x208, u64::MAX - 20);
        assert_eq!(blob_at(0x50_0000, &layout, &&memory), None);
        memory.put_int(0x200, -1);
        assert_eq!(blob_at(0x50_0000, &layout, &&memory), None);
        let reads = memory.reads.get();
        assert!(reads < 100, "{reads}");
    }

    #[test]
    fn a_stub_is_named_as_one() {
        assert_eq!(stub_name(b"StubRoutines (1)"), "StubRoutines (1)");
        assert_eq!(stub_name(b"vtable chunks"), "Stub vtable chunks");
        assert_eq!(stub_name(b"RuntimeStub - _new_instance"), "RuntimeStub - _new_instance");
    }
}
