//! Which methods stand at a place of a compiled one: itself, and those that were compiled into it.
//!
//! How the places are written down is HotSpot's own (`pcDesc.hpp`, `scopeDesc.cpp`, `compressedStream.hpp`, `unsigned5.hpp`).

use crate::blobs::{Blob, BlobKind};
use crate::layout::Layout;
use crate::memory::{Memory, array, bytes, int, word};
use mallow_wire::jvm::Place;

/// So many methods may stand within each other.
const INLINED_MAX: usize = 64;

/// A method at a place, by its address, with the index of its bytecode where there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) method: u64,
    pub(crate) bytecode: Option<u32>,
}

/// What is written down of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scopes {
    /// Innermost first.
    pub(crate) methods: Vec<Scope>,
    /// Whether it is of this very address, so that a call may return here.
    pub(crate) is_of_address: bool,
}

/// The methods at an address. Of an interrupted function it is any instruction's: the scopes are those of the next place that has some.
pub(crate) fn scopes(blob: &Blob, pc: u64, is_exact: bool, layout: &Layout, memory: &impl Memory) -> Scopes {
    let found = match blob.kind {
        BlobKind::Compiled => scopes_at(blob, pc, is_exact, layout, memory),
        _ => None,
    };
    found.filter(|scopes| !scopes.methods.is_empty()).unwrap_or_else(|| {
        let method = blob.head.word(layout.of(Place::CompiledMethod), memory).unwrap_or(0);
        Scopes { methods: vec![Scope { method, bytecode: None }], is_of_address: false }
    })
}

fn scopes_at(blob: &Blob, pc: u64, is_exact: bool, layout: &Layout, memory: &impl Memory) -> Option<Scopes> {
    let tables = Tables::of(blob, layout, memory)?;
    let (decode, is_of_address) = tables.scope_of(pc.checked_sub(blob.code)?, is_exact, memory)?;
    let (mut decode, mut methods) = (decode, Vec::new());
    while decode != 0 && methods.len() < INLINED_MAX {
        let [outside, method, bytecode] =
            numbers(tables.scopes.wrapping_add(decode), layout.version, memory)?;
        let index = u64::from(method).checked_sub(1)?;
        let method = word(memory, tables.methods.wrapping_add(index * 8))?;
        // One more than the index; 0 is the method's entry, which the JVM's own stack traces show as bytecode 0 too.
        methods.push(Scope { method, bytecode: Some(bytecode.saturating_sub(1)) });
        decode = u64::from(outside);
    }
    Some(Scopes { methods, is_of_address })
}

/// Where the places that have scopes begin and end, the scopes, and the methods that they name.
struct Tables {
    places: u64,
    end: u64,
    scopes: u64,
    methods: u64,
}

impl Tables {
    fn of(blob: &Blob, layout: &Layout, memory: &impl Memory) -> Option<Tables> {
        let field = |place: u64| blob.start.wrapping_add(place);
        let offset = |place: Place| u64::try_from(blob.head.int(layout.of(place), memory)?).ok();
        let places = offset(Place::ScopePcs)?;
        if let (Some(immutable), Some(mutable)) = (layout.get(Place::Immutable), layout.get(Place::Mutable)) {
            let (immutable, mutable) = (blob.head.word(immutable, memory)?, blob.head.word(mutable, memory)?);
            let scopes = immutable.checked_add(offset(Place::ScopesOffset)?)?;
            let methods = mutable.checked_add(offset(Place::MutableRelocations)?)?;
            return Some(Tables { places: immutable.checked_add(places)?, end: scopes, scopes, methods });
        }
        Some(Tables {
            places: field(places),
            end: field(offset(Place::ScopePcsEnd)?),
            scopes: blob.head.word(layout.of(Place::ScopesBegin), memory)?,
            methods: field(offset(Place::Metadata)?),
        })
    }

    /// Where the scopes of an address are written, from the list of such addresses, which is in order, and whether they are of this very
    /// address: those of the next one do for an interrupted function, or those of the last one before where none comes.
    fn scope_of(&self, offset: u64, is_exact: bool, memory: &impl Memory) -> Option<(u64, bool)> {
        const ENTRY_BYTES: u64 = 16;
        /// So many entries are read at once.
        const TOGETHER: u64 = 128;
        const ENTRIES_MAX: u64 = 1 << 24;
        let count = (self.end.checked_sub(self.places)? / ENTRY_BYTES).min(ENTRIES_MAX);
        // The entry that is wanted stands at `low` or behind, and not behind `high`.
        let (mut low, mut high) = (0, count);
        while high - low > TOGETHER {
            let middle = low.midpoint(high);
            let at = int(memory, self.places.wrapping_add(middle * ENTRY_BYTES))?;
            if i64::from(at) < offset as i64 { low = middle } else { high = middle + 1 }
        }
        let list = bytes(
            memory,
            self.places.wrapping_add(low * ENTRY_BYTES),
            (high - low) * ENTRY_BYTES,
            ((TOGETHER + 1) * ENTRY_BYTES) as usize,
        )?;
        let half = |entry: &[u8], at: usize| {
            entry.get(at..at + 4).and_then(|half| half.try_into().ok()).map_or(0, i32::from_le_bytes)
        };
        let entries = list.chunks_exact(ENTRY_BYTES as usize);
        let entries =
            entries.map(|entry| (i64::from(half(entry, 0)), u64::try_from(half(entry, 4)).unwrap_or(0)));
        let mut before = None;
        for (at, decode) in entries {
            if at == offset as i64 {
                return Some((decode, true));
            }
            if at > offset as i64 && decode != 0 {
                return is_exact.then_some((decode, false));
            }
            before = Some(decode).filter(|decode| *decode != 0).or(before);
        }
        before.filter(|_| is_exact).map(|decode| (decode, false))
    }
}

/// Three numbers that are written with as few bytes as they need.
fn numbers(address: u64, version: u32, memory: &impl Memory) -> Option<[u32; 3]> {
    /// Since this version no byte is 0.
    const NO_ZEROS_SINCE: u32 = 20;
    let bytes: [u8; 16] = array(memory, address)?;
    let (mut rest, mut found) = (&bytes[..], [0; 3]);
    for into in &mut found {
        *into = number(&mut rest, u32::from(version >= NO_ZEROS_SINCE));
    }
    Some(found)
}

/// A number in one to five bytes, the lowest first: bytes from 192 on say that more follow.
fn number(bytes: &mut &[u8], lowest: u32) -> u32 {
    const MORE: u32 = 192;
    const LENGTH_MAX: u32 = 5;
    let mut sum = 0u32;
    for index in 0..LENGTH_MAX {
        let Some((byte, rest)) = bytes.split_first() else { break };
        *bytes = rest;
        sum = sum.wrapping_add(u32::from(*byte).wrapping_sub(lowest) << (6 * index));
        if u32::from(*byte) < MORE {
            break;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Head;
    use crate::memory::made_up::MadeUp;

    const PLACES: [(Place, u64); 5] = [
        (Place::CompiledMethod, 8),
        (Place::ScopePcs, 16),
        (Place::ScopePcsEnd, 20),
        (Place::ScopesBegin, 24),
        (Place::Metadata, 32),
    ];

    /// A compiled method at 0x1000 whose code is at 0x2000: two places within three methods, at 10 and 30; `more` places behind these.
    fn compiled(memory: &MadeUp, more: i32) -> Blob {
        memory.put_word(0x1008, 0xaaa8);
        memory.put_int(0x1010, 0x10_0000);
        memory.put_int(0x1014, 0x10_0000 + (4 + more) * 16);
        memory.put_word(0x1018, 0x9000);
        memory.put_int(0x1020, 0x800);
        let places = [(-1, 0), (10, 1), (30, 9)]
            .into_iter()
            .chain((0..more).map(|at| (40 + at, 9)))
            .chain([(i32::MAX, 0)]);
        for (at, (offset, decode)) in (0x10_1000..).step_by(16).zip(places) {
            memory.put(at, &[0; 16]);
            memory.put_int(at, offset);
            memory.put_int(at + 4, decode);
        }
        // The scopes: outside of it, method, bytecode.
        memory.put(0x9000, &[0; 64]);
        memory.put(0x9001, &[5, 1, 3]);
        memory.put(0x9005, &[0, 2, 193, 1]);
        memory.put(0x9009, &[0, 3, 0]);
        for (at, method) in [0xa000, 0xb000, 0xc000].into_iter().enumerate() {
            memory.put_word(0x1800 + at as u64 * 8, method);
        }
        Blob {
            start: 0x1000,
            end: 0x3000,
            code: 0x2000,
            frame_bytes: 32,
            frame_complete: Some(4),
            kind: BlobKind::Compiled,
            mark: 1,
            head: Head::read(0x1000, &memory),
        }
    }

    fn of(blob: &Blob, memory: &MadeUp, offset: u64, is_exact: bool) -> (Vec<(u64, Option<u32>)>, bool) {
        let found = scopes(blob, 0x2000 + offset, is_exact, &Layout::made_up(17, &PLACES), &memory);
        (found.methods.iter().map(|scope| (scope.method, scope.bytecode)).collect(), found.is_of_address)
    }

    #[test]
    fn a_place_has_the_methods_within_each_other() {
        let memory = MadeUp::default();
        let blob = compiled(&memory, 0);
        let inlined = vec![(0xa000, Some(2)), (0xb000, Some(193 + 64 - 1))];
        let alone = vec![(0xaaa8, None)];
        assert_eq!(of(&blob, &memory, 10, false), (inlined.clone(), true));
        assert_eq!(of(&blob, &memory, 30, true), (vec![(0xc000, Some(0))], true));
        // A call returns to none of these; an interrupted function is on its way to the next, or behind the last.
        assert_eq!(of(&blob, &memory, 11, false), (alone, false));
        assert_eq!(of(&blob, &memory, 3, true), (inlined, false));
        assert_eq!(of(&blob, &memory, 11, true).0[0], (0xc000, Some(0)));
        assert_eq!(of(&blob, &memory, 3000, true).0[0], (0xc000, Some(0)));
    }

    #[test]
    fn a_long_list_is_searched_with_few_reads() {
        let memory = MadeUp::default();
        let blob = compiled(&memory, 5000);
        for offset in [10, 30, 40, 77, 2000, 5039] {
            let before = memory.reads.get();
            assert!(of(&blob, &memory, offset, false).1, "{offset}");
            let reads = memory.reads.get() - before;
            assert!(reads < 30, "{reads}");
        }
        assert!(!of(&blob, &memory, 5040, true).1);
    }

    #[test]
    fn damaged_scopes_leave_the_method_alone() {
        let alone = vec![(0xaaa8, None)];
        let memory = MadeUp::default();
        let blob = compiled(&memory, 0);
        // A scope outside of itself, for ever.
        memory.put(0x9001, &[1, 1, 1]);
        assert_eq!(of(&blob, &memory, 10, false).0.len(), INLINED_MAX);
        memory.put(0x9001, &[255; 16]);
        assert_eq!(of(&blob, &memory, 10, false), (alone.clone(), false));
        memory.put_int(0x1014, 0x90);
        assert_eq!(of(&blob, &memory, 10, false), (alone.clone(), false));
        memory.put_int(0x1014, i32::MAX);
        assert_eq!(of(&blob, &memory, 10, false), (alone, false));
    }

    /// As HotSpot's own notes give them.
    #[test]
    fn compressed_numbers_have_their_documented_lengths() {
        let of = |bytes: &[u8], lowest: u32| {
            let mut rest = bytes;
            let found = number(&mut rest, lowest);
            (found, bytes.len() - rest.len())
        };
        assert_eq!((of(&[0], 0), of(&[191, 7], 0), of(&[192, 0], 0)), ((0, 1), (191, 1), (192, 2)));
        assert_eq!(
            (of(&[193, 5], 0), of(&[255, 255, 1], 0)),
            ((193 + 5 * 64, 2), (255 + 255 * 64 + 4096, 3))
        );
        assert_eq!((of(&[1], 1), of(&[191], 1), of(&[192, 1], 1)), ((0, 1), (190, 1), (191, 2)));
        assert_eq!((of(&[0xff; 9], 0).1, of(&[], 0)), (5, (0, 0)));
    }
}
