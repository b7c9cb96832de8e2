//! Where the first instructions of patched functions went, and where they came from.
//!
//! A patched function begins with a jump to its *trampoline*, a slot in a mapping of ours near its code:
//!
//! ```text
//! 0    mov r11, PATCHED          the function's description
//! 10   jmp [rip]                 to its hook
//! 16   the hook's address
//! 24   the displaced instructions, and a jump back behind them
//! ```
//!
//! The hook calls the displaced instructions when it wants the function. A signal may strike in between, and a stack be walked from
//! there: to an unwinder, an instruction of a trampoline is the one from which it was made, because what it does to the stack is the same.

use crate::bounds::first;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use mallow_wire::patches::{Arguments, Call, MOVED_BYTES_MAX, STEPS_MAX, Step};

/// What a hook needs to know of its patched function.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patched {
    /// Its instructions: calling them is calling the function.
    pub real: usize,
    /// The kind of call.
    pub call: Call,
    /// The meaning of its arguments.
    pub arguments: Arguments,
    /// Its address.
    pub entry: usize,
    /// The number of steps.
    pub step_count: usize,
    /// The origin of each moved instruction.
    pub steps: [Step; STEPS_MAX],
}

/// The offset of the moved instructions in a slot.
pub const MOVED_OFFSET: usize = 24;
/// Bytes of a slot.
pub const SLOT_BYTES: usize = (MOVED_OFFSET + MOVED_BYTES_MAX).next_multiple_of(32);

/// The slots of one object. They stay when it is unloaded, and are no longer reached.
struct Region {
    start: AtomicUsize,
    count: AtomicUsize,
    patched: AtomicPtr<Patched>,
}

/// The most objects with patches.
pub const REGIONS_MAX: usize = 256;

static REGIONS: [Region; REGIONS_MAX] = [const {
    Region {
        start: AtomicUsize::new(0),
        count: AtomicUsize::new(0),
        patched: AtomicPtr::new(core::ptr::null_mut()),
    }
}; REGIONS_MAX];
static REGION_COUNT: AtomicUsize = AtomicUsize::new(0);

/// Returns whether there is room for another object's slots.
pub fn has_room() -> bool {
    REGION_COUNT.load(Ordering::Relaxed) < REGIONS_MAX
}

/// Makes the slots known that begin at `start`, one object's after the other's; while there is room.
///
/// # Safety
/// `patched` points at the descriptions of as many functions, which stay there. One thread at a time does this.
pub unsafe fn note(start: usize, patched: *mut Patched, count: usize) {
    let known = REGION_COUNT.load(Ordering::Relaxed);
    if let Some(region) = REGIONS.get(known) {
        region.patched.store(patched, Ordering::Relaxed);
        region.start.store(start, Ordering::Relaxed);
        region.count.store(count, Ordering::Relaxed);
        REGION_COUNT.store(known + 1, Ordering::SeqCst);
        forget_unpatched();
    }
}

/// The slots of as many functions of which the first begins at `entry`, and their descriptions: the addresses of both.
pub fn of(entry: usize, count: usize) -> Option<(usize, usize)> {
    let known = REGION_COUNT.load(Ordering::Acquire);
    let is_its = |region: &&Region| {
        // SAFETY: there is a description of each function.
        let begins_with = || unsafe { (*region.patched.load(Ordering::Relaxed)).entry };
        region.count.load(Ordering::Relaxed) == count && count > 0 && begins_with() == entry
    };
    let region = first(&REGIONS, known).iter().find(is_its)?;
    Some((region.start.load(Ordering::Relaxed), region.patched.load(Ordering::Relaxed) as usize))
}

/// The function of the slot in which an address lies, and where in it.
fn slot_around(address: usize) -> Option<(&'static Patched, usize)> {
    let known = REGION_COUNT.load(Ordering::Acquire);
    first(&REGIONS, known).iter().find_map(|region| {
        let offset = address.wrapping_sub(region.start.load(Ordering::Relaxed));
        let slot = offset / SLOT_BYTES;
        // SAFETY: there are so many descriptions.
        (slot < region.count.load(Ordering::Relaxed))
            .then(|| (unsafe { &*region.patched.load(Ordering::Relaxed).add(slot) }, offset % SLOT_BYTES))
    })
}

/// Addresses of functions that were not patched when somebody found them out.
static UNPATCHED: [AtomicPtr<AtomicPtr<()>>; UNPATCHED_MAX] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; UNPATCHED_MAX];
static UNPATCHED_COUNT: AtomicUsize = AtomicUsize::new(0);
const UNPATCHED_MAX: usize = 64;

/// Has an address taken back to null whenever functions are patched, while there is room.
pub(crate) fn forget_when_patched(address: &'static AtomicPtr<()>) {
    let own = core::ptr::from_ref(address).cast_mut();
    let count = UNPATCHED_COUNT.load(Ordering::SeqCst).min(UNPATCHED_MAX);
    if first(&UNPATCHED, count).iter().any(|known| known.load(Ordering::SeqCst) == own) {
        return;
    }
    if let Some(place) = UNPATCHED.get(UNPATCHED_COUNT.fetch_add(1, Ordering::SeqCst)) {
        place.store(own, Ordering::SeqCst);
    }
}

fn forget_unpatched() {
    let count = UNPATCHED_COUNT.load(Ordering::SeqCst).min(UNPATCHED_MAX);
    for address in first(&UNPATCHED, count) {
        // SAFETY: null, or one that lives as long as the process.
        if let Some(address) = unsafe { address.load(Ordering::SeqCst).as_ref() } {
            address.store(core::ptr::null_mut(), Ordering::SeqCst);
        }
    }
}

/// The first instructions of the function at an address, if they were moved.
pub fn moved(entry: usize) -> Option<usize> {
    let known = REGION_COUNT.load(Ordering::SeqCst);
    first(&REGIONS, known).iter().find_map(|region| {
        let count = region.count.load(Ordering::Relaxed);
        // SAFETY: there are so many descriptions.
        let patched = unsafe { core::slice::from_raw_parts(region.patched.load(Ordering::Relaxed), count) };
        patched.iter().find(|patched| patched.entry == entry).map(|patched| patched.real)
    })
}

/// Returns whether an address lies in a slot.
pub fn is_one(address: usize) -> bool {
    slot_around(address).is_some()
}

/// Returns the original of an interrupted instruction: itself, except for those of trampolines.
#[inline]
pub fn original(pc: usize) -> usize {
    slot_around(pc).map_or(pc, |(patched, offset)| original_in(patched, offset))
}

fn original_in(patched: &Patched, offset: usize) -> usize {
    let moved = offset.saturating_sub(MOVED_OFFSET);
    let steps = first(&patched.steps, patched.step_count.min(STEPS_MAX));
    let step = steps.iter().rev().find(|step| usize::from(step.moved) <= moved);
    patched.entry.wrapping_add(step.map_or(0, |step| usize::from(step.displaced)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn patched() -> Patched {
        let arguments = Arguments { block: 0, size: 0, count: 0, record: 0 };
        let steps = [Step { displaced: 0, moved: 0 }; STEPS_MAX];
        Patched { real: 0, call: Call::Free, arguments, entry: 0x1000, step_count: 0, steps }
    }

    #[test]
    fn each_byte_of_a_trampoline_is_one_of_the_function() {
        let step = |displaced, moved| Step { displaced, moved };
        let patched = Patched {
            step_count: 3,
            // test; a short jump that is now a long one; the jump back.
            steps: [step(0, 0), step(3, 3), step(5, 9), step(0, 0), step(0, 0), step(0, 0)],
            ..patched()
        };
        let at = |offset| original_in(&patched, offset) - 0x1000;
        assert_eq!([at(0), at(10), at(16), at(24), at(26)], [0; 5]);
        assert_eq!([at(27), at(32)], [3, 3]);
        assert_eq!([at(33), at(38)], [5, 5]);
    }
}
