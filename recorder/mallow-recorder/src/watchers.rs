//! Which observers are active in a program that has the recorder linked in: none, as a rule, and then a call costs one compare.
//!
//! Two may be active at once: `mallow record` from outside, by the library that it has preloaded, and a recording that the
//! program began itself. In a static program both use the recorder that is linked in, and count as one.

use crate::bootstrap;
use crate::outside;
use core::sync::atomic::{AtomicU32, Ordering};

/// A recording that the program began is in progress.
pub const INSIDE: u32 = 1;
/// The program runs under mallow, which has loaded a library into it.
pub const OUTSIDE: u32 = 2;
/// It is not known yet whether it does.
pub const UNKNOWN: u32 = 4;
/// The program runs under mallow, and is recorded by the recorder that is linked into it.
pub const LINKED: u32 = 8;
/// The recorder that is linked in is at work.
pub const OWN: u32 = INSIDE | LINKED;

/// The active observers.
pub static WATCHED: AtomicU32 = AtomicU32::new(UNKNOWN);

/// Returns whether anybody does.
#[inline(always)]
pub fn is_watched() -> bool {
    WATCHED.load(Ordering::Relaxed) != 0
}

/// Returns the active observers. Called by hooks: the first call finds out.
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

/// Returns whether the program runs under mallow, as far as calls have been seen.
pub fn is_outside() -> bool {
    WATCHED.load(Ordering::Relaxed) & (OUTSIDE | LINKED) != 0
}

/// Returns whether it is mallow that the recorder in the program works for.
pub fn is_taken() -> bool {
    WATCHED.load(Ordering::Relaxed) & LINKED != 0
}

/// Returns whether any call has been seen.
pub fn is_met() -> bool {
    WATCHED.load(Ordering::Relaxed) & UNKNOWN == 0
}

/// Marks that a recording that the program began is in progress.
pub fn begin_inside() {
    WATCHED.fetch_or(INSIDE, Ordering::SeqCst);
}

/// It is over.
pub fn end_inside() {
    WATCHED.fetch_and(!INSIDE, Ordering::SeqCst);
}
