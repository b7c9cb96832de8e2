//! What lies in a JVM's heaps of code: a compiled method, a piece of the interpreter, a stub; and which methods stand at a place of a compiled one.
//!
//! All of it is read by checked copies, once for each address at which a call returns: what was found is kept by [`super::hotspot`]. How the heaps are
//! searched and how the scopes of a place are written down is HotSpot's own (`codeCache.cpp`, `heap.cpp`, `pcDesc.hpp`, `scopeDesc.cpp`,
//! `compressedStream.hpp`, `unsigned5.hpp`).

use super::vm_tables::{self, Located, Place};
use crate::bounds::{at_mut, first};
use crate::process;
use mallow_wire::jvm::ARRAY_ELEMENTS;
use mallow_wire::shared::PAGE_BYTES;

/// The maximal depth of inlined methods.
pub const INLINED_MAX: usize = 64;
/// Instead of an index of bytecode: there is none.
pub const NO_BCI: u32 = u32::MAX;

/// A piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blob {
    /// Its address.
    pub start: usize,
    /// The address of its code.
    pub code: usize,
    /// The size of its frames, with the return address.
    pub frame_bytes: usize,
    /// Its kind.
    pub kind: BlobKind,
}

/// The kind of a piece of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlobKind {
    /// A compiled method.
    Compiled,
    /// A wrapper of a native method.
    Native,
    /// A stub.
    Stub,
}

/// A word at an offset of a structure that may not be mapped.
fn word(address: usize, offset: usize) -> Option<usize> {
    process::word_checked(address.wrapping_add(offset))
}

/// The lower half of one.
fn int(address: usize, offset: usize) -> Option<i32> {
    word(address, offset).map(|word| word as i32)
}

/// Returns the bounds of the interpreter's code.
pub fn interpreter() -> Option<[usize; 2]> {
    let queue = word(Place::Interpreter.of(), 0).filter(|queue| *queue != 0)?;
    let start = word(queue, Place::QueueBuffer.of())?;
    let bytes = int(queue, Place::QueueBytes.of())?;
    Some([start, start.checked_add(usize::try_from(bytes).ok()?)?])
}

/// The piece of code around an address.
pub fn blob_at(pc: usize) -> Option<Blob> {
    const HEAPS_MAX: i32 = 16;
    let heaps = word(Place::Heaps.of(), 0)?;
    // A growable array: its length, and where its elements lie.
    let elements = Place::ArrayElements.get().unwrap_or(ARRAY_ELEMENTS);
    let (count, list) = (int(heaps, 0)?, word(heaps, elements)?);
    let mut heaps = (0..count.clamp(0, HEAPS_MAX) as usize).filter_map(|at| word(list, at * 8));
    heaps.find_map(|heap| blob_in(heap, pc))
}

fn blob_in(heap: usize, pc: usize) -> Option<Blob> {
    const FREE: u8 = 0xff;
    let memory = heap + Place::HeapMemory.of();
    let (low, high) = (word(memory, Place::SpaceLow.of())?, word(memory, Place::SpaceHigh.of())?);
    if !(low..high).contains(&pc) {
        return None;
    }
    let shift = int(heap, Place::HeapShift.of())?.clamp(0, 30);
    let segments = word(heap + Place::HeapSegments.of(), Place::SpaceLow.of())?;
    let mut segment = (pc - low) >> shift;
    // Each segment says how far back the next one towards the beginning of its block is.
    loop {
        match byte(segments + segment)? {
            FREE => return None,
            0 => break,
            back => segment = segment.checked_sub(usize::from(back))?,
        }
    }
    let start = low + (segment << shift) + Place::BlockSize.of();
    let frame_words = int(start, Place::BlobFrameSize.of())?;
    let code = match Place::CodeBegin.get() {
        Some(begin) => word(start, begin)?,
        None => start.checked_add_signed(int(start, Place::CodeOffset.of())? as isize)?,
    };
    let name = word(start, Place::BlobName.of())?;
    let kind = match word(name, 0)?.to_le_bytes() {
        name if &name == b"nmethod\0" => BlobKind::Compiled,
        name if &name == b"native n" => BlobKind::Native,
        _ => BlobKind::Stub,
    };
    let frame_bytes = usize::try_from(frame_words).unwrap_or(0) * 8;
    Some(Blob { start, code, frame_bytes, kind })
}

fn byte(address: usize) -> Option<u8> {
    let mut byte = 0u8;
    // SAFETY: there is room for one.
    unsafe { process::copy_checked(&[[address, 1]], &raw mut byte) }.then_some(byte)
}

impl Blob {
    /// Returns where a frame of a compiled method stores its current place, when it returns to the deoptimisation
    /// handler: an offset from the frame's inner end. `None` for another address.
    pub fn original_pc(&self, pc: usize) -> Option<usize> {
        if self.kind != BlobKind::Compiled {
            return None;
        }
        let handler = match Place::DeoptBegin.get() {
            Some(begin) => word(self.start, begin)?,
            None => self.start.checked_add_signed(int(self.start, Place::DeoptOffset.of())? as isize)?,
        };
        /// A call and a jump; that for calls of method handles stands next to it.
        const HANDLERS_BYTES: usize = 64;
        let is_it = (handler..handler + HANDLERS_BYTES).contains(&pc);
        let offset = int(self.start, Place::OriginalPc.of())?;
        usize::try_from(offset).ok().filter(|_| is_it)
    }

    /// Reads the methods at an address of a compiled method, innermost first, each with the index of its bytecode;
    /// returns their number. If nothing is recorded for the address, it is the compiled method alone.
    pub fn scopes(&self, pc: usize, into: &mut [(usize, u32); INLINED_MAX]) -> usize {
        let count = match self.kind {
            BlobKind::Compiled => self.scopes_at(pc, into).unwrap_or(0),
            _ => 0,
        };
        if count > 0 {
            return count;
        }
        *at_mut(into, 0) = (word(self.start, Place::CompiledMethod.of()).unwrap_or(0), NO_BCI);
        1
    }

    fn scopes_at(&self, pc: usize, into: &mut [(usize, u32); INLINED_MAX]) -> Option<usize> {
        let [pcs, pcs_end, scopes, metadata] = self.tables()?;
        let mut decode = scope_of(pcs, pcs_end, pc.checked_sub(self.code)?)?;
        let mut count = 0;
        while decode != 0 && count < INLINED_MAX {
            let [outside, method, bci] = numbers(scopes + decode)?;
            let method = word(metadata, (method as usize).checked_sub(1)? * 8)?;
            // One more than the index; 0 is the method's entry, which the JVM's own stack traces show as bytecode 0 too.
            *at_mut(into, count) = (method, bci.saturating_sub(1));
            count += 1;
            decode = outside as usize;
        }
        Some(count)
    }

    /// Returns where the list of places with scopes begins and ends, the scopes, and the methods that they refer to.
    fn tables(&self) -> Option<[usize; 4]> {
        let offset = |place: Place| usize::try_from(int(self.start, place.of())?).ok();
        let pcs = offset(Place::ScopePcs)?;
        if let (Some(immutable), Some(mutable)) = (Place::Immutable.get(), Place::Mutable.get()) {
            let (immutable, mutable) = (word(self.start, immutable)?, word(self.start, mutable)?);
            let scopes = offset(Place::ScopesOffset)?;
            let metadata = mutable + offset(Place::MutableRelocations)?;
            return Some([immutable + pcs, immutable + scopes, immutable + scopes, metadata]);
        }
        let end = offset(Place::ScopePcsEnd)?;
        let scopes = word(self.start, Place::ScopesBegin.of())?;
        Some([self.start + pcs, self.start + end, scopes, self.start + offset(Place::Metadata)?])
    }
}

/// Returns where the scopes of an address are, from the sorted list of such addresses; 0 if there are none.
fn scope_of(pcs: usize, end: usize, offset: usize) -> Option<usize> {
    const BYTES: usize = 16;
    let (mut low, mut high) = (0, end.checked_sub(pcs)? / BYTES);
    while low < high {
        let middle = low.midpoint(high);
        // The distance of the address, and where its scopes are.
        let pair = word(pcs, middle * BYTES)?;
        let (at, decode) = (i64::from(pair as i32), pair >> 32);
        match at.cmp(&(offset as i64)) {
            core::cmp::Ordering::Equal => return Some(decode),
            core::cmp::Ordering::Less => low = middle + 1,
            core::cmp::Ordering::Greater => high = middle,
        }
    }
    None
}

/// Three numbers that are written with as few bytes as they need.
fn numbers(address: usize) -> Option<[u32; 3]> {
    const BYTES: usize = 16;
    let mut bytes = [0u8; BYTES];
    // They are fewer bytes, mostly, and may be the last in their mapping.
    let to_page_end = PAGE_BYTES - address % PAGE_BYTES;
    // SAFETY: there is room for them.
    let mut copy = |count| unsafe { process::copy_checked(&[[address, count]], bytes.as_mut_ptr()) };
    (copy(BYTES) || copy(to_page_end.min(BYTES))).then_some(())?;
    let (mut place, mut found) = (0, [0; 3]);
    for into in &mut found {
        (*into, place) = number(&bytes, place, lowest_byte());
    }
    Some(found)
}

/// Since version 20 no byte is 0.
fn lowest_byte() -> u32 {
    const SINCE: u32 = 20;
    u32::from(vm_tables::version() >= SINCE)
}

/// Decodes a number of one to five bytes, the lowest first: bytes from 192 on say that more follow. Returns it with
/// the offset after it.
fn number(bytes: &[u8; 16], place: usize, lowest: u32) -> (u32, usize) {
    const MORE: u32 = 192;
    const LENGTH_MAX: usize = 5;
    let mut sum = 0u32;
    for (index, byte) in first(bytes, 16).iter().skip(place).take(LENGTH_MAX).enumerate() {
        let byte = u32::from(*byte);
        sum = sum.wrapping_add(byte.wrapping_sub(lowest) << (6 * index));
        if byte < MORE || index == LENGTH_MAX - 1 {
            return (sum, place + index + 1);
        }
    }
    (sum, bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys;

    #[test]
    fn numbers_at_the_end_of_their_mapping_are_read() {
        let pages = sys::map_private(2 * PAGE_BYTES) as usize;
        let at = pages + PAGE_BYTES - 5;
        // SAFETY: fresh memory, of which the first page stays.
        unsafe {
            sys::unmap((pages + PAGE_BYTES) as *mut u8, PAGE_BYTES);
            *(at as *mut [u8; 5]) = [7, 192, 1, 192, 2];
        }
        assert_eq!(numbers(at), Some([7, 192 + 64, 192 + 128]));
        assert_eq!(numbers(pages + PAGE_BYTES), None);
    }

    /// As HotSpot's own notes give them.
    #[test]
    fn compressed_numbers_have_their_documented_lengths() {
        let of = |bytes: &[u8], lowest: u32| {
            let mut padded = [0u8; 16];
            padded[..bytes.len()].copy_from_slice(bytes);
            number(&padded, 0, lowest)
        };
        assert_eq!((of(&[0], 0), of(&[191], 0), of(&[192, 0], 0)), ((0, 1), (191, 1), (192, 2)));
        assert_eq!(
            (of(&[193, 5], 0), of(&[255, 255, 1], 0)),
            ((193 + 5 * 64, 2), (255 + 255 * 64 + 4096, 3))
        );
        assert_eq!((of(&[1], 1), of(&[191], 1), of(&[192, 1], 1)), ((0, 1), (190, 1), (191, 2)));
        let all = [0xff; 5];
        assert_eq!(of(&all, 0).1, 5);
    }
}
