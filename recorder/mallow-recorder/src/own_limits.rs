//! Limits that the program sets for itself, on its address space (`RLIMIT_AS`) and on its private memory (`RLIMIT_DATA`).
//!
//! The recorder has 2.1 GiB of address space in the program, of which it uses some pages: under a limit of 1 GiB, which the program keeps by itself, no call of `malloc`
//! would be answered any more. So the kernel is given what the program asks for and what is ours, and the program is told what it asked for.

use crate::sys;
pub use crate::sys::{LIMIT_ADDRESSES as ADDRESSES, LIMIT_DATA as DATA};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The soft limit and the hard one, in bytes.
pub type Pair = [u64; 2];

/// A limit that the program has set.
struct Asked {
    resource: u32,
    is_set: AtomicBool,
    pair: [AtomicU64; 2],
}

impl Asked {
    const fn new(resource: u32) -> Asked {
        Asked { resource, is_set: AtomicBool::new(false), pair: [const { AtomicU64::new(0) }; 2] }
    }
}

static ASKED: [Asked; 2] = [Asked::new(ADDRESSES), Asked::new(DATA)];

fn of(resource: u32) -> Option<&'static Asked> {
    ASKED.iter().find(|asked| asked.resource == resource)
}

/// What the program asked for, if it did.
pub fn asked(resource: u32) -> Option<Pair> {
    let asked = of(resource)?;
    asked
        .is_set
        .load(Ordering::Acquire)
        .then(|| asked.pair.each_ref().map(|limit| limit.load(Ordering::Relaxed)))
}

/// The soft limit that the program has set, or the one that it has.
pub fn soft_bytes(resource: u32) -> usize {
    match asked(resource) {
        Some([soft, _]) => usize::try_from(soft).unwrap_or(usize::MAX),
        None if resource == DATA => sys::data_limit_bytes(),
        None => sys::address_limit_bytes(),
    }
}

/// Notes that the kernel has taken [`widened`] limits.
pub fn note(resource: u32, wanted: Pair) {
    let Some(asked) = of(resource) else { return };
    asked.pair.iter().zip(wanted).for_each(|(place, limit)| place.store(limit, Ordering::Relaxed));
    asked.is_set.store(true, Ordering::Release);
    sys::note_limited(resource);
}

/// What the kernel is to be given where the program wants this. `None` if that is the same.
pub fn widened(resource: u32, wanted: Pair) -> Option<Pair> {
    let [soft, hard] = wanted;
    if of(resource).is_none() || soft > hard {
        return None;
    }
    let ours = sys::lasting_bytes(resource == DATA) as u64;
    let [_, most] = sys::limits(resource)?;
    // A quarter is for what we map later.
    let wide_hard = more(hard, ours.saturating_add(hard / 4));
    // Whoever has no right to more keeps what there is, as long as it wants no more than it has.
    let is_allowed = hard <= asked(resource).map_or(most, |[_, hard]| hard);
    let wide_hard = if is_allowed { wide_hard.min(most) } else { wide_hard };
    Some([more(soft, ours).min(wide_hard), wide_hard])
}

fn more(limit: u64, bytes: u64) -> u64 {
    limit.saturating_add(bytes)
}

/// Does something for which the kernel has the program's limits as they are: a program takes this one's place, and has none of our memory.
pub fn as_asked<T>(go: impl FnOnce() -> T) -> T {
    let set = |asked: &Asked| {
        let wanted = self::asked(asked.resource)?;
        let now = sys::limits(asked.resource)?;
        // The child of a `vfork` may have set a lower one. The hard limit cannot be raised again by everybody, so it stays.
        (sys::set_limits(asked.resource, [wanted[0].min(now[0]), now[1]]) == 0).then_some(now)
    };
    let before = ASKED.each_ref().map(set);
    let outcome = go();
    for (asked, before) in ASKED.iter().zip(before) {
        if let Some(before) = before {
            sys::set_limits(asked.resource, before);
        }
    }
    outcome
}
