//! Computes how many bytes an object has in the JVM's memory. The file only says how many bytes its fields have in the file.
//!
//! That depends on options which are not in the file: whether references and class pointers are compressed, how
//! objects are aligned; and on the JVM's version: from JDK 15 on a class's fields fill the gaps that its super
//! classes left (`FieldLayoutBuilder` of HotSpot, before that `ClassFileParser::layout_fields`). So every layout that
//! occurs is tried on objects that are adjacent: with the right one, most of them end where the next one begins.

use super::records::{OBJECT, type_bytes};

/// A layout of objects in a JVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// The size of a reference.
    pub(super) reference_bytes: u32,
    /// The size of the header, before the first field.
    pub(super) header_bytes: u32,
    /// The size of the header of an array, before the first element.
    pub(super) array_header_bytes: u32,
    /// Whether fields fill gaps of super classes.
    pub(super) fills_gaps: bool,
    /// The size of an object is a multiple of this.
    pub(super) alignment: u32,
}

/// The order of the fields of a class before JDK 15.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// The largest first, and references last.
    BySize,
    /// References first, and no gap filled.
    ReferencesFirst,
}

/// Reference, header, array header, fills gaps: the layouts of 64-bit JVMs, the most frequent first.
const LAYOUTS_64: [(u32, u32, u32, bool); 10] = [
    (4, 12, 16, true),
    (4, 12, 16, false),
    (8, 12, 16, true),
    (8, 16, 24, true),
    (8, 16, 24, false),
    (4, 16, 24, true),
    (4, 16, 24, false),
    // Compact headers, from JDK 24 on.
    (4, 8, 12, true),
    (8, 8, 12, true),
    // Elements after an odd header, from JDK 23 on.
    (8, 16, 20, true),
];
/// The layouts of 32-bit JVMs.
const LAYOUTS_32: [(u32, u32, u32, bool); 2] = [(4, 8, 12, false), (4, 8, 12, true)];
/// Addresses below this fit into 32 bits if they are divided by 8.
const COMPRESSED_SPAN: u64 = 32 << 30;

/// The maximum size of an object's fields. Only a malicious file names so many fields.
const FIELD_BYTES_MAX: u32 = 1 << 30;

/// What the fields of a class and its super classes occupy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Occupied {
    end: u32,
    /// The start and the length of each gap.
    gaps: Vec<(u32, u32)>,
}

impl Layout {
    /// Returns all layouts of JVMs with ids of this size; the first is the default if there are no adjacent objects.
    pub(super) fn all(id_bytes: usize, first: u64, last: u64, alignment: u32) -> Vec<Layout> {
        let of = |(reference_bytes, header_bytes, array_header_bytes, fills_gaps)| Layout {
            reference_bytes,
            header_bytes,
            array_header_bytes,
            fills_gaps,
            alignment,
        };
        if id_bytes == 4 {
            return LAYOUTS_32.into_iter().map(of).collect();
        }
        // The base of compressed references is not before the heap's first byte.
        let fits = last.saturating_sub(first) < COMPRESSED_SPAN * u64::from(alignment / 8);
        let fitting = |layout: &Layout| layout.reference_bytes == 8 || fits;
        LAYOUTS_64.into_iter().map(of).filter(fitting).collect()
    }

    /// Returns what an object without fields occupies.
    pub(super) fn empty(&self) -> Occupied {
        Occupied { end: self.header_bytes, gaps: Vec::new() }
    }

    /// Returns what is occupied with the fields of one more class, by their types.
    pub(super) fn with_fields(
        &self,
        mut below: Occupied,
        types: impl Iterator<Item = u8>,
        order: Order,
    ) -> Occupied {
        if below.end > FIELD_BYTES_MAX {
            return below;
        }
        let mut references = 0;
        let mut others: Vec<u32> = Vec::new();
        for kind in types {
            match type_bytes(kind, 8) {
                _ if kind == OBJECT => references += 1,
                Some(bytes) => others.push(bytes as u32),
                None => {}
            }
        }
        others.sort_unstable_by(|a, b| b.cmp(a));
        let references = std::iter::repeat_n(self.reference_bytes, references);
        if self.fills_gaps {
            others.into_iter().chain(references).for_each(|bytes| below.place(bytes));
            return below;
        }
        match order {
            Order::BySize => self.without_gaps(below, &others, references.len() as u32),
            Order::ReferencesFirst => {
                let mut end = below.end.next_multiple_of(self.reference_bytes);
                for bytes in references.chain(others) {
                    end = end.next_multiple_of(bytes) + bytes;
                }
                Occupied { end, gaps: Vec::new() }
            }
        }
    }

    /// Applies the older rule: fields come after those of the super class; smaller ones may fill the one gap before the longs.
    fn without_gaps(&self, below: Occupied, sorted: &[u32], references: u32) -> Occupied {
        let mut end = below.end.next_multiple_of(self.reference_bytes);
        let of = |bytes: u32| sorted.iter().filter(|other| **other == bytes).count() as u32;
        let (longs, mut ints, mut shorts, mut bytes) = (of(8), of(4), of(2), of(1));
        let mut references = references;
        if longs > 0 {
            let mut gap = end.next_multiple_of(8) - end;
            for (size, left) in
                [(4, &mut ints), (2, &mut shorts), (1, &mut bytes), (self.reference_bytes, &mut references)]
            {
                let fit = (gap / size).min(*left);
                *left -= fit;
                gap -= fit * size;
            }
            end = end.next_multiple_of(8);
        }
        end += 8 * longs + 4 * ints + 2 * shorts + bytes;
        if references > 0 {
            end = end.next_multiple_of(self.reference_bytes) + references * self.reference_bytes;
        }
        Occupied { end, gaps: Vec::new() }
    }

    /// Returns the size of an object with these fields.
    pub(super) fn instance_bytes(&self, occupied: &Occupied) -> u64 {
        self.aligned(occupied.end.into())
    }

    /// Returns the size of an array.
    pub(super) fn array_bytes(&self, element_bytes: u32, len: u32) -> u64 {
        let header = self.array_header_bytes.next_multiple_of(element_bytes.max(1));
        self.aligned(u64::from(header) + u64::from(element_bytes) * u64::from(len))
    }

    /// Rounds up to the alignment of objects.
    pub(super) fn aligned(&self, bytes: u64) -> u64 {
        bytes.next_multiple_of(self.alignment.into())
    }
}

impl Occupied {
    /// Adds bytes at the end, and leaves no gap that a field may fill.
    pub(super) fn padded(&self, bytes: u32) -> Occupied {
        Occupied { end: self.end.next_multiple_of(8) + bytes, gaps: Vec::new() }
    }

    /// Puts a field into the smallest gap that it fits into, the last one of equal ones; or at the end.
    fn place(&mut self, bytes: u32) {
        let fitting = |(start, len): (u32, u32)| start.next_multiple_of(bytes) + bytes <= start + len;
        let best =
            (0..self.gaps.len()).rev().filter(|at| fitting(self.gaps[*at])).min_by_key(|at| self.gaps[*at].1);
        let (start, len) = match best {
            Some(at) => self.gaps.remove(at),
            None => (self.end, self.end.next_multiple_of(bytes) + bytes - self.end),
        };
        let field = start.next_multiple_of(bytes);
        self.end = self.end.max(field + bytes);
        for (from, to) in [(start, field), (field + bytes, start + len)] {
            if from < to {
                self.gaps.push((from, to - from));
            }
        }
        self.gaps.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::{INT, LONG};
    use super::*;

    const BOOLEAN: u8 = 4;

    fn bytes(layout: Layout, classes: &[&[u8]]) -> u64 {
        let occupied = classes.iter().fold(layout.empty(), |below, types| {
            layout.with_fields(below, types.iter().copied(), Order::BySize)
        });
        layout.instance_bytes(&occupied)
    }

    #[test]
    fn classes_that_the_jvm_knew_by_place_had_their_references_first() {
        let layouts = Layout::all(8, 0, 1 << 20, 8);
        let types = [OBJECT, OBJECT, LONG, BOOLEAN];
        let bytes = |layout: Layout, order| {
            layout.instance_bytes(&layout.with_fields(layout.empty(), types.into_iter(), order))
        };
        // References from 12 to 20, the long from 24 to 32, and the boolean after it, which could have been before the long.
        assert_eq!(bytes(layouts[1], Order::BySize), 32);
        assert_eq!(bytes(layouts[1], Order::ReferencesFirst), 40);
        // Since JDK 15 there is no such class.
        assert_eq!(bytes(layouts[0], Order::ReferencesFirst), 32);
    }

    #[test]
    fn fields_fill_gaps() {
        let layouts = Layout::all(8, 0, 1 << 20, 8);
        let (new, old) = (layouts[0], layouts[1]);
        // The int is between the header and the long.
        assert_eq!((bytes(new, &[&[LONG, INT]]), bytes(old, &[&[LONG, INT]])), (24, 24));
        // A super class leaves four bytes before its long, and three behind its boolean.
        assert_eq!((bytes(new, &[&[LONG], &[INT]]), bytes(old, &[&[LONG], &[INT]])), (24, 32));
        assert_eq!((bytes(new, &[&[BOOLEAN], &[BOOLEAN]]), bytes(old, &[&[BOOLEAN], &[BOOLEAN]])), (16, 24));
        assert_eq!(bytes(new, &[&[], &[OBJECT, INT, BOOLEAN]]), 24);
    }

    #[test]
    fn arrays_have_a_header() {
        let layouts = Layout::all(8, 0, 1 << 20, 8);
        assert_eq!((layouts[0].array_bytes(1, 0), layouts[0].array_bytes(1, 9)), (16, 32));
        assert_eq!(layouts[3].array_bytes(8, 1), 32);
        let narrow = Layout::all(4, 0, 0, 8)[0];
        assert_eq!((narrow.array_bytes(4, 1), narrow.array_bytes(8, 1)), (16, 24));
    }

    #[test]
    fn a_heap_above_32_gib_has_wide_references() {
        assert!(Layout::all(8, 1 << 30, 40 << 30, 8).iter().all(|layout| layout.reference_bytes == 8));
        assert_eq!(Layout::all(8, 1 << 30, 40 << 30, 16)[0].reference_bytes, 4);
    }
}
