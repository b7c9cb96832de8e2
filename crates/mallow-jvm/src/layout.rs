//! Where a JVM keeps things, as the tables for its debugger say it.

use crate::memory::{Memory, Pages, Unreadable, text, word};
use mallow_wire::jvm::{ENTRIES_MAX, FIELDS, PLACES, Place, TYPES, WANTED, is_enough};
use std::ffi::CStr;

/// A type's or a field's name is not longer.
const NAME_BYTES_MAX: usize = 64;

/// The addresses of the words that a JVM's library exports for its debugger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exports {
    fields: [u64; FIELDS.len()],
    types: [u64; TYPES.len()],
}

impl Exports {
    /// What the library has; `address` tells of an exported name. None where one is missing.
    pub fn of(mut address: impl FnMut(&str) -> Option<u64>) -> Option<Exports> {
        let mut exports = Exports { fields: [0; FIELDS.len()], types: [0; TYPES.len()] };
        let all = exports.fields.iter_mut().zip(FIELDS).chain(exports.types.iter_mut().zip(TYPES));
        for (into, name) in all {
            *into = address(name.to_str().ok()?)?;
        }
        Some(exports)
    }

    /// Reads a byte of the first of them, to see whether anything can be read.
    pub(crate) fn read_first(&self, memory: &impl Memory, byte: &mut [u8; 1]) -> Result<(), Unreadable> {
        memory.read(self.fields[0], byte)
    }

    /// The same in a process that has the library elsewhere.
    #[must_use]
    pub fn moved(self, by: u64) -> Exports {
        let moved = |address: u64| address.wrapping_add(by);
        Exports { fields: self.fields.map(moved), types: self.types.map(moved) }
    }
}

/// The offset, address or size of each place.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    found: [Option<u64>; PLACES],
    /// The JVM's version; 0 when it does not say.
    pub(crate) version: u32,
}

impl Layout {
    /// Reads the tables; none where there are none.
    pub(crate) fn read(exports: &Exports, memory: &impl Memory) -> Option<Layout> {
        let pages = Pages::new(memory);
        let mut layout = Layout { found: [None; PLACES], version: 0 };
        each_entry(&exports.fields, &pages, |[class, field, is_static, offset, address]| {
            let Some(class) = text(&pages, class, NAME_BYTES_MAX) else { return };
            if !WANTED.iter().any(|(_, wanted, _)| is(&class, wanted)) {
                return;
            }
            let Some(field) = text(&pages, field, NAME_BYTES_MAX) else { return };
            let value = if is_static as u32 != 0 { address } else { offset };
            let same = WANTED.iter().filter(|(_, of, wanted)| is(&class, of) && is(&field, wanted));
            same.for_each(|(place, ..)| layout.found[*place as usize] = Some(value));
        })?;
        each_entry(&exports.types, &pages, |[class, bytes, ..]| {
            let Some(class) = text(&pages, class, NAME_BYTES_MAX) else { return };
            let same = WANTED.iter().filter(|(_, of, wanted)| wanted.is_empty() && is(&class, of));
            same.for_each(|(place, ..)| layout.found[*place as usize] = Some(bytes));
        })?;
        layout.version = layout.get(Place::Version).and_then(|at| version(&pages, at)).unwrap_or(0);
        Some(layout)
    }

    /// The offset, address or size, if the JVM has it.
    pub(crate) fn get(&self, place: Place) -> Option<u64> {
        self.found[place as usize]
    }

    /// Of a place that is there where all is enough.
    pub(crate) fn of(&self, place: Place) -> u64 {
        self.get(place).unwrap_or(0)
    }

    /// Returns whether all is there that frames of Java are read by.
    pub(crate) fn is_enough(&self) -> bool {
        is_enough(|place| self.get(place).is_some())
    }

    #[cfg(test)]
    pub(crate) fn made_up(version: u32, places: &[(Place, u64)]) -> Layout {
        let mut layout = Layout { found: [None; PLACES], version };
        places.iter().for_each(|(place, value)| layout.found[*place as usize] = Some(*value));
        layout
    }
}

fn is(text: &[u8], wanted: &CStr) -> bool {
    text == wanted.to_bytes()
}

/// Calls for each entry of a table with its words, until one has no first word.
fn each_entry(exported: &[u64], memory: &impl Memory, mut visit: impl FnMut([u64; 5])) -> Option<()> {
    let [entries, stride, places @ ..] = exported else { return None };
    let (mut entry, stride) = (word(memory, *entries)?, word(memory, *stride)?);
    let mut offsets = [0; 5];
    for (into, place) in offsets.iter_mut().zip(places) {
        *into = word(memory, *place)?;
    }
    for _ in 0..ENTRIES_MAX {
        let mut words = [0; 5];
        for (into, offset) in words.iter_mut().zip(&offsets[..places.len()]) {
            *into = word(memory, entry.wrapping_add(*offset))?;
        }
        if words[0] == 0 {
            return Some(());
        }
        visit(words);
        entry = entry.wrapping_add(stride);
    }
    None
}

/// `17.0.15+6`.
fn version(memory: &impl Memory, place: u64) -> Option<u32> {
    const DIGITS_MAX: usize = 3;
    let text = text(memory, word(memory, place)?, NAME_BYTES_MAX)?;
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).take(DIGITS_MAX);
    Some(digits.fold(0, |number, digit| number * 10 + u32::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::made_up::MadeUp;

    /// Exports at 0x1000 and behind, entries of five words at 0x4000 and 0x8000, names at 0x2000 and behind.
    fn written(memory: &MadeUp, fields: &[(&str, &str, bool, u64)], types: &[(&str, u64)]) -> Exports {
        let mut next = 0x1000;
        let mut export = |value: u64| {
            memory.put_word(next, value);
            next += 8;
            next - 8
        };
        let exports = Exports {
            fields: [0x4000, 40, 0, 8, 16, 24, 32].map(&mut export),
            types: [0x8000, 16, 0, 8].map(&mut export),
        };
        let mut name_at = 0x2000;
        let mut name = |text: &str| {
            memory.put(name_at, &[text.as_bytes(), &[0; 17]].concat());
            name_at += text.len() as u64 + 17;
            name_at - text.len() as u64 - 17
        };
        for (at, (class, field, is_static, value)) in (0x4000..).step_by(40).zip(fields) {
            let words = [name(class), name(field), u64::from(*is_static), *value, *value];
            (at..).step_by(8).zip(words).for_each(|(at, word)| memory.put_word(at, word));
        }
        for (at, (class, bytes)) in (0x8000..).step_by(16).zip(types) {
            memory.put_word(at, name(class));
            memory.put_word(at + 8, *bytes);
        }
        // The rest of the pages is there, and zero.
        exports
    }

    fn with_zeros() -> MadeUp {
        let memory = MadeUp::default();
        memory.put(0x1000, &vec![0; 0x9000]);
        memory
    }

    #[test]
    fn places_are_those_that_the_tables_name() {
        let memory = with_zeros();
        let fields = [
            ("CodeCache", "_heaps", true, 0x7777),
            ("CodeCache", "_other", true, 1),
            ("nmethod", "_compile_id", false, 304),
            ("Abstract_VM_Version", "_s_vm_release", true, 0x3000),
        ];
        let exports = written(&memory, &fields, &[("HeapBlock", 16), ("Other", 3)]);
        memory.put_word(0x3000, 0x3100);
        memory.put(0x3100, b"17.0.15+6");
        let layout = Layout::read(&exports, &&memory).unwrap();
        assert_eq!((layout.version, layout.is_enough()), (17, false));
        let get = |place| layout.get(place);
        assert_eq!(
            [Place::Heaps, Place::CompileId, Place::BlockSize, Place::LowBound].map(get),
            [Some(0x7777), Some(304), Some(16), None]
        );
        let pages = memory.reads.get();
        assert!(pages < 20, "{pages}");
    }

    #[test]
    fn tables_without_an_end_are_none() {
        let memory = with_zeros();
        let exports = written(&memory, &[("CodeCache", "_heaps", true, 1)], &[]);
        // The entries do not move on, so the first one is there for ever.
        memory.put_word(exports.fields[1], 0);
        assert!(Layout::read(&exports, &&memory).is_none());
        memory.put_word(exports.fields[1], 40);
        memory.put_word(exports.fields[0], u64::MAX - 3);
        assert!(Layout::read(&exports, &&memory).is_none());
    }

    #[test]
    fn what_is_exported_lies_where_the_library_does() {
        let exports = Exports::of(|name| Some(name.len() as u64)).unwrap();
        assert_eq!(exports.moved(0x1000).fields[0], 0x1000 + "gHotSpotVMStructs".len() as u64);
        assert!(Exports::of(|name| (name != "gHotSpotVMTypes").then_some(1)).is_none());
    }
}
