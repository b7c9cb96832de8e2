//! Special treatment of HotSpot's own classes that is not in a dump: fields that it adds (`javaClasses.hpp`), the
//! annotation `@Contended`, and classes whose fields it accessed by fixed offsets (`classFileParser.cpp`, before JDK
//! 15).
//!
//! This is that of JDK 8 to 25. If a version has other fields, and none of its named fields shows it, the size of an object is some bytes off.

use super::layout::{Layout, Occupied, Order};
use super::records::{BYTE, CHAR, INT, LONG, OBJECT};

/// The padding before and after fields that must not share a cache line with others.
const CONTENDED_BYTES: u32 = 128;

/// The versions in which a class has fields that no dump names, recognised by a field that it does name.
#[derive(Clone, Copy)]
enum When {
    Always,
    /// In versions in which the class has this field.
    With(&'static [u8]),
    /// In versions in which it does not.
    Without(&'static [u8]),
}

/// Class and types. `LONG` also represents a machine address.
const FIELDS: [(&[u8], When, &[u8]); 8] = [
    (b"java/lang/Class", When::Always, &[LONG, LONG, INT, INT, OBJECT, OBJECT, OBJECT]),
    (b"java/lang/ClassLoader", When::Always, &[LONG]),
    (b"java/lang/Module", When::Always, &[LONG]),
    (b"java/lang/Thread", When::With(HOLDER), &[LONG, INT, CHAR, BYTE]),
    (b"java/lang/invoke/MemberName", When::Always, &[LONG]),
    (b"java/lang/invoke/ResolvedMethodName", When::Always, &[LONG]),
    (b"java/lang/invoke/ResolvedMethodName", When::Without(b"vmholder"), &[OBJECT]),
    (b"java/lang/invoke/MethodHandleNatives$CallSiteContext", When::Always, &[LONG, LONG]),
];
/// A field of threads since JDK 19, which made them smaller.
const HOLDER: &[u8] = b"holder";
/// Classes with contended fields.
const CONTENDED: [(&[u8], When); 3] = [
    (b"java/lang/Thread", When::Without(HOLDER)),
    (b"java/util/concurrent/atomic/Striped64$Cell", When::Always),
    (b"java/util/concurrent/ConcurrentHashMap$CounterCell", When::Always),
];
/// In these classes and in the boxes of numbers, references came first.
const REFERENCES_FIRST: [&[u8]; 8] = [
    b"java/lang/AssertionStatusDirectives",
    b"java/lang/Class",
    b"java/lang/ClassLoader",
    b"java/lang/StackTraceElement",
    b"java/lang/String",
    b"java/lang/Throwable",
    b"java/lang/ref/Reference",
    b"java/lang/ref/SoftReference",
];

/// Returns the order of the fields of a class. A box has only one field, so its order does not matter.
pub(super) fn order(class: Option<&[u8]>) -> Order {
    match REFERENCES_FIRST.iter().any(|name| Some(*name) == class) {
        true => Order::ReferencesFirst,
        false => Order::BySize,
    }
}

impl When {
    fn applies(self, has_field: impl Fn(&[u8]) -> bool) -> bool {
        match self {
            When::Always => true,
            When::With(field) => has_field(field),
            When::Without(field) => !has_field(field),
        }
    }
}

/// Returns the types that are added to the fields of a class.
pub(super) fn injected(class: Option<&[u8]>, has_field: impl Fn(&[u8]) -> bool) -> impl Iterator<Item = u8> {
    let rows = FIELDS.iter().filter(move |(name, when, _)| Some(*name) == class && when.applies(&has_field));
    rows.flat_map(|(_, _, types)| types.iter().copied())
}

/// Returns what is occupied, including the padding of contended fields of a class.
pub(super) fn padded(
    class: Option<&[u8]>,
    has_field: impl Fn(&[u8]) -> bool,
    layout: &Layout,
    occupied: Occupied,
) -> Occupied {
    let is_contended = CONTENDED.iter().any(|(name, when)| Some(*name) == class && when.applies(&has_field));
    match is_contended && layout.header_bytes > 8 {
        true => occupied.padded(2 * CONTENDED_BYTES),
        false => occupied,
    }
}
