//! Fields that HotSpot adds to some of its own classes, and that no dump names: `javaClasses.hpp` and the annotation `@Contended`.
//!
//! They are those of JDK 8 to 21. Where a version has fewer, an object comes out some bytes too large.

use super::layout::{Layout, Occupied};
use super::records::{INT, LONG, OBJECT};

/// What stands before and behind fields that two processors must not share a cache line for.
const CONTENDED_BYTES: u32 = 128;

/// Class and types. `LONG` stands for an address of the machine, too.
const FIELDS: [(&[u8], &[u8]); 6] = [
    (b"java/lang/Class", &[LONG, LONG, INT, INT, OBJECT, OBJECT, OBJECT]),
    (b"java/lang/ClassLoader", &[LONG]),
    (b"java/lang/Module", &[LONG]),
    (b"java/lang/invoke/MemberName", &[LONG]),
    (b"java/lang/invoke/ResolvedMethodName", &[LONG, OBJECT]),
    (b"java/lang/invoke/MethodHandleNatives$CallSiteContext", &[LONG, LONG]),
];
/// Classes with contended fields.
const CONTENDED: [&[u8]; 3] = [
    b"java/lang/Thread",
    b"java/util/concurrent/atomic/Striped64$Cell",
    b"java/util/concurrent/ConcurrentHashMap$CounterCell",
];

/// The types that are added to the fields of a class.
pub(super) fn injected(class: Option<&[u8]>) -> &'static [u8] {
    FIELDS.iter().find(|(name, _)| Some(*name) == class).map_or(&[], |(_, types)| types)
}

/// What is occupied with what keeps contended fields of a class apart.
pub(super) fn padded(class: Option<&[u8]>, layout: &Layout, occupied: Occupied) -> Occupied {
    match CONTENDED.iter().any(|name| Some(*name) == class) {
        true if layout.header_bytes > 8 => occupied.padded(2 * CONTENDED_BYTES),
        _ => occupied,
    }
}
