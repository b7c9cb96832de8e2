//! Generations of addresses: since when an address belongs to the code that is there now.
//!
//! A program may unload a library and load another one at the same addresses. Each unload of code begins a *generation*.
//! An address carries the generation in which its granule, a piece of the address space, was last vacated ([`since`]): two
//! addresses that are equal in both are the same place of the same module. Other modules are not affected, so a program that
//! loads and unloads plug-ins all day creates no new stacks for its own code.
//!
//! The loader does not say which module was unloaded: it counts loads and unloads. So each module is noted when its code is
//! first seen on a stack ([`meet`]), and after an unload ([`Unload::finish`]) those that are no longer loaded have vacated their
//! granules. If anything was *loaded* meanwhile, by another thread or a destructor, a module that is there need not be the one
//! that was noted: then all granules count as vacated. The same holds if there are more modules than places to note them.

use crate::bounds::at;
use crate::elf;
use crate::objects::{self, Object};
use crate::process;
use core::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use mallow_wire::shared::{GENERATION_COUNT, PAGE_BYTES};

/// Bytes of a granule: small, so that what lies beside an unloaded library is left alone.
const GRANULE_BYTES: usize = 16 << 10;
/// Granules at this distance share a stamp: libraries lie within 128 MiB of each other. That one is vacated with another costs new
/// stacks, and no truth.
const GRANULE_COUNT: usize = 8192;
/// Programs with more libraries on their stacks are rare.
const MET_COUNT: usize = 512;

/// The state of the address space.
struct AddressSpace {
    /// How often code was unloaded.
    generation: AtomicU64,
    /// By granule: the generation in which it was last vacated, modulo [`GENERATION_COUNT`].
    vacated: [AtomicU16; GRANULE_COUNT],
    /// Modules whose code was seen on a stack; 0 is a free place.
    met: [AtomicU64; MET_COUNT],
    /// There were more of them.
    has_unnoted: AtomicBool,
}

/// The range of a module, in pages: the first in the upper 36 bits, the number in the lower 28. One word, so that a
/// store cannot be interrupted halfway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range(u64);

impl Range {
    const COUNT_BITS: u32 = 28;

    fn of(start: usize, end: usize) -> Range {
        let (first, end) = (start / PAGE_BYTES, end.div_ceil(PAGE_BYTES));
        Range((first as u64) << Range::COUNT_BITS | end.saturating_sub(first) as u64)
    }

    fn granules(self) -> impl Iterator<Item = usize> {
        let first = (self.0 >> Range::COUNT_BITS) as usize * PAGE_BYTES;
        let bytes = (self.0 & ((1 << Range::COUNT_BITS) - 1)) as usize * PAGE_BYTES;
        (first / GRANULE_BYTES..(first + bytes).div_ceil(GRANULE_BYTES)).take(GRANULE_COUNT)
    }
}

static ADDRESS_SPACE: AddressSpace = AddressSpace::new();

/// How often code was unloaded: while it is unchanged, so is all other state.
#[inline(always)]
pub fn generation() -> u64 {
    ADDRESS_SPACE.generation.load(Ordering::Relaxed)
}

/// The generation in which the current code at an address was loaded, modulo [`GENERATION_COUNT`].
#[inline(always)]
pub fn since(address: usize) -> u64 {
    ADDRESS_SPACE.since(address)
}

/// Notes a module, before anything is known of its addresses.
pub fn meet(object: &Object) {
    ADDRESS_SPACE.meet(Range::of(object.start, object.end));
}

impl AddressSpace {
    const fn new() -> AddressSpace {
        AddressSpace {
            generation: AtomicU64::new(0),
            vacated: [const { AtomicU16::new(0) }; GRANULE_COUNT],
            met: [const { AtomicU64::new(0) }; MET_COUNT],
            has_unnoted: AtomicBool::new(false),
        }
    }

    #[inline(always)]
    fn since(&self, address: usize) -> u64 {
        let granule = address / GRANULE_BYTES % GRANULE_COUNT;
        u64::from(at(&self.vacated, granule).load(Ordering::Relaxed))
    }

    fn meet(&self, range: Range) {
        for met in &self.met {
            let mut there = met.load(Ordering::Acquire);
            if there == 0 {
                let taken = met.compare_exchange(0, range.0, Ordering::AcqRel, Ordering::Acquire);
                there = taken.map_or_else(|other| other, |_| range.0);
            }
            if there == range.0 {
                return;
            }
        }
        self.has_unnoted.store(true, Ordering::Relaxed);
    }

    /// Begins a generation: the modules that are gone have vacated their granules; all have, if that cannot be
    /// determined. The stamps are written before the generation is incremented, and a module is removed after its
    /// stamps. Returns the stamp.
    fn vacate(&self, is_certain: bool, is_loaded: impl Fn(Range) -> bool) -> u64 {
        let generation = self.generation.load(Ordering::Relaxed) + 1;
        let stamp = (generation % GENERATION_COUNT) as u16;
        if self.has_unnoted.swap(false, Ordering::Relaxed) || !is_certain {
            // Modules that are seen from here on are stored again, because nothing is known under the new stamps.
            self.met.iter().for_each(|met| met.store(0, Ordering::Release));
            self.vacated.iter().for_each(|granule| granule.store(stamp, Ordering::Release));
        } else {
            for met in &self.met {
                let range = Range(met.load(Ordering::Acquire));
                if range.0 != 0 && !is_loaded(range) {
                    for granule in range.granules() {
                        at(&self.vacated, granule % GRANULE_COUNT).store(stamp, Ordering::Release);
                    }
                    met.store(0, Ordering::Release);
                }
            }
        }
        self.generation.store(generation, Ordering::SeqCst);
        u64::from(stamp)
    }
}

/// An unload in progress.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Unload {
    loads_before: u64,
    unloads_before: u64,
}

/// The loader's counter at the last update.
static LOADS_SEEN: AtomicU64 = AtomicU64::new(0);
static UNLOADS_SEEN: AtomicU64 = AtomicU64::new(0);

impl Unload {
    /// Called before the loader unloads something.
    pub fn begin() -> Unload {
        let mut unload = Unload { loads_before: 0, unloads_before: 0 };
        elf::with_counts(|loads, unloads| {
            unload = Unload { loads_before: loads, unloads_before: unloads };
        });
        unload
    }

    /// Behind it. The loader's lock is held meanwhile, so that one thread does this at a time, and nothing is loaded. `forget` is called with the
    /// stamp of what has just been vacated.
    pub fn finish(self, forget: impl Fn(u64)) {
        elf::with_counts(|loads, unloads| {
            let unloads_seen = UNLOADS_SEEN.load(Ordering::Relaxed);
            if unloads_seen != unloads {
                // What went before this began went unseen: by a load that failed, or a library's own unload.
                let is_first = unloads_seen == self.unloads_before;
                let loads_then =
                    if is_first { self.loads_before } else { LOADS_SEEN.load(Ordering::Relaxed) };
                forget(ADDRESS_SPACE.vacate(loads_then == loads, is_loaded));
                if process::is_ready() {
                    process::header().generation.store(generation(), Ordering::Relaxed);
                }
            }
            UNLOADS_SEEN.store(unloads, Ordering::Relaxed);
            LOADS_SEEN.store(loads, Ordering::Relaxed);
        });
    }
}

fn is_loaded(range: Range) -> bool {
    let start = (range.0 >> Range::COUNT_BITS) as usize * PAGE_BYTES;
    objects::find(start).is_some_and(|object| Range::of(object.start, object.end) == range)
}

#[cfg(test)]
#[path = "unloads_tests.rs"]
mod tests;
