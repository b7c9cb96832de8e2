//! Where a JVM keeps things, as it says itself: the tables for its debugger (`mallow_wire::jvm`), read in its own process.
//!
//! They are constant data. Read once, when the library is met.

use crate::bounds::at;
use crate::elf::definition_in;
use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering};
use mallow_wire::jvm::{self, ENTRIES_MAX, FIELDS, PLACES, TYPES, WANTED};

pub use mallow_wire::jvm::Place;

/// For each field its offset, address or size, plus 1; 0 for one that the JVM does not have.
static FOUND: [AtomicUsize; PLACES] = [const { AtomicUsize::new(0) }; PLACES];

/// Looks a field up in the tables of this process's JVM.
pub trait Located {
    /// The offset, address or size, if the JVM has it.
    fn get(self) -> Option<usize>;

    /// Of a place that is there by [`read`]'s word.
    fn of(self) -> usize;
}

impl Located for Place {
    #[inline(always)]
    fn get(self) -> Option<usize> {
        at(&FOUND, self as usize).load(Ordering::Relaxed).checked_sub(1)
    }

    #[inline(always)]
    fn of(self) -> usize {
        self.get().unwrap_or(0)
    }
}

/// One of the exported tables: where its entries lie, and what is where in one.
struct Table {
    entries: usize,
    stride: usize,
    places: [usize; 5],
}

/// The word at an address of the library's own data.
///
/// # Safety
/// It is one.
unsafe fn word(address: usize) -> usize {
    // SAFETY: by contract; constant data of the library's is aligned.
    unsafe { *(address as *const usize) }
}

impl Table {
    /// # Safety
    /// The library is HotSpot's, and loaded.
    unsafe fn of(bias: usize, dynamic: usize, names: &[&CStr]) -> Option<Table> {
        // SAFETY: exported words.
        let value = |name: &CStr| definition_in(bias, dynamic, name).map(|it| unsafe { word(it.address) });
        let [entries, stride, places @ ..] = names else { return None };
        let mut found = [0; 5];
        for (into, name) in found.iter_mut().zip(places) {
            *into = value(name)?;
        }
        Some(Table { entries: value(entries)?, stride: value(stride)?, places: found })
    }

    /// Calls for each entry, with its words at the places, until one has no first word.
    ///
    /// # Safety
    /// As [`Table::of`].
    unsafe fn each(&self, mut visit: impl FnMut([usize; 5])) {
        for index in 0..ENTRIES_MAX {
            let entry = self.entries + index * self.stride;
            // SAFETY: by contract the entries are the library's, and end with one of zeros.
            let words = self.places.map(|place| unsafe { word(entry + place) });
            let [name, ..] = words;
            if name == 0 {
                break;
            }
            visit(words);
        }
    }
}

/// Returns whether a string of the library's is this one.
///
/// # Safety
/// It ends with a zero.
unsafe fn is(text: usize, name: &CStr) -> bool {
    let wanted = name.to_bytes_with_nul();
    // SAFETY: by contract: no byte behind one that differs is looked at.
    text != 0 && wanted.iter().enumerate().all(|(at, byte)| unsafe { *((text + at) as *const u8) } == *byte)
}

/// Reads the tables of a library; false when it has none.
///
/// # Safety
/// The object is loaded, and HotSpot's.
#[inline(never)]
pub unsafe fn read(bias: usize, dynamic: usize) -> bool {
    // SAFETY: by contract.
    let tables = unsafe { Table::of(bias, dynamic, &FIELDS).zip(Table::of(bias, dynamic, &TYPES)) };
    let Some((fields, types)) = tables else { return false };
    let keep = |place: Place, value: usize| at(&FOUND, place as usize).store(value + 1, Ordering::Relaxed);
    // SAFETY: by contract; the flag that says whether a field is static is of four bytes.
    unsafe {
        fields.each(|[class, field, is_static, offset, address]| {
            for (place, wanted_class, wanted) in WANTED {
                if is(class, wanted_class) && is(field, wanted) {
                    keep(place, if is_static as u32 != 0 { address } else { offset });
                }
            }
        });
        types.each(|[class, bytes, ..]| {
            for (place, wanted_class, wanted) in WANTED {
                if wanted.is_empty() && is(class, wanted_class) {
                    keep(place, bytes);
                }
            }
        });
    }
    true
}

/// The JVM's version, which it has as text: `17.0.15+6`. The number of it is set later.
pub fn version() -> u32 {
    const DIGITS_MAX: usize = 3;
    let Some(place) = Place::Version.get() else { return 0 };
    // SAFETY: a variable of the library's that points at constant text, which ends with a zero.
    unsafe {
        let text = word(place);
        let digit = |at: usize| (text != 0).then(|| *((text + at) as *const u8)).filter(u8::is_ascii_digit);
        (0..DIGITS_MAX).map_while(digit).fold(0, |number, digit| number * 10 + u32::from(digit - b'0'))
    }
}

/// Returns whether all is there that frames of Java are read by.
pub fn is_enough() -> bool {
    jvm::is_enough(|place| place.get().is_some())
}
