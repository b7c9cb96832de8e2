//! Who watches a program that has the recorder linked into it: nobody, as a rule, and then a call costs one compare.
//!
//! Two may watch at once: `mallow record` from outside, by the library that it has preloaded, and a recording that the program began itself. In
//! a static program both are the recorder that is linked in, and then there is one of them.

use crate::bootstrap;
use crate::outside;
use core::sync::atomic::{AtomicU32, Ordering};

/// A recording that the program began is under way.
pub const INSIDE: u32 = 1;
/// The program runs under mallow, which has loaded a library into it.
pub const OUTSIDE: u32 = 2;
/// It is not known yet whether it does.
pub const UNKNOWN: u32 = 4;
/// The program runs under mallow, and is recorded by the recorder that is linked into it.
pub const LINKED: u32 = 8;
/// The recorder that is linked in is at work.
pub const OWN: u32 = INSIDE | LINKED;

/// Who watches.
pub static WATCHED: AtomicU32 = AtomicU32::new(UNKNOWN);

/// Whether anybody does.
#[inline(always)]
pub fn is_watched() -> bool {
    WATCHED.load(Ordering::Relaxed) != 0
}

/// Who does. To be asked by who stands in front of an allocator: the first one finds it out.
#[inline(always)]
pub fn watchers() -> u32 {
    let watched = WATCHED.load(Ordering::Relaxed);
    if watched & UNKNOWN == 0 { watched } else { find_out() }
}

#[cold]
#[inline(never)]
fn find_out() -> u32 {
    if outside::calls().is_some() {
        WATCHED.fetch_or(OUTSIDE, Ordering::Relaxed);
    } else if bootstrap::start_linked() {
        WATCHED.fetch_or(LINKED, Ordering::Relaxed);
    }
    WATCHED.fetch_and(!UNKNOWN, Ordering::Relaxed) & !UNKNOWN
}

/// Whether the program runs under mallow, as far as calls have come by.
pub fn is_outside() -> bool {
    WATCHED.load(Ordering::Relaxed) & (OUTSIDE | LINKED) != 0
}

/// Whether it is mallow that the recorder in the program works for.
pub fn is_taken() -> bool {
    WATCHED.load(Ordering::Relaxed) & LINKED != 0
}

/// Whether any call has come by.
pub fn is_met() -> bool {
    WATCHED.load(Ordering::Relaxed) & UNKNOWN == 0
}

/// A recording that the program began is under way from now on.
pub fn begin_inside() {
    WATCHED.fetch_or(INSIDE, Ordering::SeqCst);
}

/// It is over.
pub fn end_inside() {
    WATCHED.fetch_and(!INSIDE, Ordering::SeqCst);
}
