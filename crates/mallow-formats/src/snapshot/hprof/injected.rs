//! What HotSpot does with some of its own classes, and no dump tells: fields that it adds (`javaClasses.hpp`), the annotation `@Contended`, and
//! classes whose fields it knew by their places (`classFileParser.cpp`, before JDK 15).
//!
//! They are those of JDK 8 to 25. Where a version has others, and none of its fields tells, an object comes out some bytes off.

use super::layout::{Layout, Occupied, Order};
use super::records::{BYTE, CHAR, INT, LONG, OBJECT};

/// What stands before and behind fields that two processors must not share a cache line for.
const CONTENDED_BYTES: u32 = 128;

/// In which versions a class has fields that no dump names, by a field that it does.
#[derive(Clone, Copy)]
enum When {
    Always,
    /// In versions in which the class has this field, too.
    With(&'static [u8]),
    /// In versions in which it has not.
    Without(&'static [u8]),
}

/// Class and types. `LONG` stands for an address of the machine, too.
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
/// Threads have it since JDK 19, which made them small.
const HOLDER: &[u8] = b"holder";
/// Classes with contended fields.
const CONTENDED: [(&[u8], When); 3] = [
    (b"java/lang/Thread", When::Without(HOLDER)),
    (b"java/util/concurrent/atomic/Striped64$Cell", When::Always),
    (b"java/util/concurrent/ConcurrentHashMap$CounterCell", When::Always),
];
/// Of these and of the boxes of numbers, references stood first.
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

/// In which order the fields of a class stand. A box has but one field, so that it has none.
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

/// The types that are added to the fields of a class.
pub(super) fn injected(class: Option<&[u8]>, has_field: impl Fn(&[u8]) -> bool) -> impl Iterator<Item = u8> {
    let rows = FIELDS.iter().filter(move |(name, when, _)| Some(*name) == class && when.applies(&has_field));
    rows.flat_map(|(_, _, types)| types.iter().copied())
}

/// What is occupied with what keeps contended fields of a class apart.
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
