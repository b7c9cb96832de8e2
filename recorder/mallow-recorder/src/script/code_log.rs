//! Code of scripts as numbers: which number a piece of code has, and the log in which the collector finds what it is.
//!
//! A number is given once and never again, so that a node names one piece of code for ever. A runtime frees code and makes other code at
//! the same address: [`forget`] is called when a piece dies, and from then on the address is a new one. It begins a *generation*, at which
//! every memo starts over. Where a runtime says nothing of deaths, code is a block of `malloc`'s, and [`freed`] sees it go.
//!
//! States of threads, which readers read without asking the kernel, are blocks too: their number is [`STATE`], and their deaths are counted by
//! themselves.
//!
//! The table from addresses to numbers is one word for each, with neither lock nor order: who finds no room there gets another number for
//! the same code, which the collector takes for one by its names.

use crate::bounds::at;
use crate::log_room;
use crate::process;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use mallow_wire::script::*;
use mallow_wire::shared::{CODES_OFFSET, Header};

const TABLE_ENTRIES: usize = 1 << 16;
/// Entries that an address may have: two cache lines.
const PROBES: usize = 16;
const NUMBER_BITS: u32 = CODE_MAX.count_ones();
/// Code lies at multiples of this.
const ALIGN: usize = 16;

/// Address / [`ALIGN`], and below it the number; 0 where there is room.
static TABLE: [AtomicU64; TABLE_ENTRIES] = [const { AtomicU64::new(0) }; TABLE_ENTRIES];
static GENERATION: AtomicU64 = AtomicU64::new(0);
static STATE_DEATHS: AtomicU64 = AtomicU64::new(0);
/// Those since kept stacks depend on states.
static DEATHS_BEHIND_STACKS: AtomicU64 = AtomicU64::new(0);
static ARE_BEHIND_STACKS: AtomicBool = AtomicBool::new(false);

/// Used instead of a code number for a thread's state.
pub const STATE: u32 = 0;

/// A bit for each hash of a block that is watched.
static WATCHED: [AtomicU64; WATCHED_BITS / 64] = [const { AtomicU64::new(0) }; WATCHED_BITS / 64];
const WATCHED_BITS: usize = 1 << 16;
static WATCHES: AtomicBool = AtomicBool::new(false);

/// How often a code object was freed. While it is unchanged, equal addresses are the same code.
#[inline(always)]
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Acquire)
}

/// How often a thread's state was freed.
#[inline(always)]
pub fn state_deaths() -> u64 {
    STATE_DEATHS.load(Ordering::Acquire)
}

/// How often something was freed that kept stacks may depend on, so that no thread takes its successor for it.
#[inline(always)]
pub fn deaths_behind_stacks() -> u64 {
    DEATHS_BEHIND_STACKS.load(Ordering::Acquire)
}

/// From now on kept native stacks depend on states, as a JVM's do. Called before any is read.
pub fn put_behind_stacks() {
    ARE_BEHIND_STACKS.store(true, Ordering::SeqCst);
    DEATHS_BEHIND_STACKS.fetch_add(1, Ordering::AcqRel);
}

fn count_death() {
    STATE_DEATHS.fetch_add(1, Ordering::AcqRel);
    if ARE_BEHIND_STACKS.load(Ordering::Relaxed) {
        DEATHS_BEHIND_STACKS.fetch_add(1, Ordering::AcqRel);
    }
}

/// The word with the bit of a block, and the bit.
#[inline(always)]
fn bit_of(block: usize) -> (&'static AtomicU64, u64) {
    let hash = (block / ALIGN).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    (at(&WATCHED, hash / 64 % (WATCHED_BITS / 64)), 1 << (hash % 64))
}

/// Marks a numbered block, so that it is looked up when it is freed. The mark stays: other blocks with the same bit
/// cost a look-up.
pub fn watch(block: usize) {
    let (word, bit) = bit_of(block);
    word.fetch_or(bit, Ordering::AcqRel);
    WATCHES.store(true, Ordering::Release);
}

/// A block is about to be freed.
#[inline(always)]
pub fn freed(block: usize) {
    if WATCHES.load(Ordering::Relaxed) {
        let (word, bit) = bit_of(block);
        if word.load(Ordering::Relaxed) & bit != 0 {
            freed_watched(block);
        }
    }
}

#[cold]
fn freed_watched(block: usize) {
    match number(block) {
        None => {}
        Some(STATE) => {
            take_out(block);
            count_death();
        }
        Some(_) => forget(block),
    }
}

fn places(address: usize) -> impl Iterator<Item = &'static AtomicU64> {
    let first = (address / ALIGN).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48 & !(PROBES - 1);
    (first..first + PROBES).map(|place| at(&TABLE, place))
}

/// The number of a piece of code that has one.
#[inline]
pub fn number(address: usize) -> Option<u32> {
    let wanted = (address / ALIGN) as u64;
    let entry = places(address).map(|place| place.load(Ordering::Acquire));
    let found = entry.into_iter().find(|entry| entry >> NUMBER_BITS == wanted)?;
    Some(found as u32 & CODE_MAX)
}

/// Registers a thread's state, so that it is distinguished from a later one at its address.
pub fn keep_state(block: usize) {
    keep(block, STATE);
    watch(block);
}

/// Stores a number, unless another thread has stored one meanwhile; returns the one that is valid.
fn keep(address: usize, number: u32) -> u32 {
    let wanted = (address / ALIGN) as u64;
    let entry = wanted << NUMBER_BITS | u64::from(number);
    for place in places(address) {
        let there = match place.load(Ordering::Acquire) {
            0 => place
                .compare_exchange(0, entry, Ordering::AcqRel, Ordering::Acquire)
                .map_or_else(|it| it, |_| entry),
            there => there,
        };
        if there >> NUMBER_BITS == wanted {
            return there as u32 & CODE_MAX;
        }
    }
    if let Some(place) = places(address).nth(number as usize % PROBES) {
        place.store(entry, Ordering::Release);
        // Its death would not be noticed, so it must not be used.
        GENERATION.fetch_add(1, Ordering::AcqRel);
        count_death();
    }
    number
}

/// Called when a code object is freed: its address may be reused.
pub fn forget(address: usize) {
    take_out(address);
    GENERATION.fetch_add(1, Ordering::AcqRel);
}

fn take_out(address: usize) {
    let wanted = (address / ALIGN) as u64;
    for place in places(address) {
        let entry = place.load(Ordering::Acquire);
        if entry >> NUMBER_BITS == wanted {
            let _ = place.compare_exchange(entry, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }
}

/// In a forked child, whose log is empty: all code is new.
pub fn forget_all() {
    TABLE.iter().for_each(|place| place.store(0, Ordering::Relaxed));
    GENERATION.fetch_add(1, Ordering::AcqRel);
    count_death();
}

/// What is known of a code object before its strings are read.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// [`RUNTIME_CPYTHON`], [`RUNTIME_RUBY`], [`RUNTIME_HOTSPOT`].
    pub runtime: u16,
    /// Of the runtime.
    pub version: u32,
    /// The line at which it begins.
    pub first_line: u32,
    /// The addresses and lengths of the file's name, its own name and the table of lines. The table may be in three
    /// parts.
    pub pieces: [[usize; 2]; 5],
    /// Bytes of a character of the names; 0 for UTF-8.
    pub widths: [u8; 2],
}

/// Logs the code at an address, and returns its number. `None` if there is no room or it cannot be read, which is
/// counted.
pub fn log(address: usize, found: &Found) -> Option<u32> {
    write(found).map(|code| keep(address, code))
}

/// Logs code, and returns its number, which is not stored. `None` as in [`log`].
#[inline(never)]
pub fn write(found: &Found) -> Option<u32> {
    const FIXED_BYTES: usize = size_of::<CodeRecord>();
    let [file, name, lines @ ..] = found.pieces;
    let lines_bytes: usize = lines.iter().map(|piece| piece[1]).sum();
    let record_bytes = (FIXED_BYTES + file[1] + name[1] + lines_bytes).next_multiple_of(8);
    let (code, at) = numbered(record_bytes)?;
    // SAFETY: the reservation is ours alone and lies within the log.
    let is_read = unsafe {
        let record = at.cast::<CodeRecord>();
        (*record).head.runtime = found.runtime;
        (*record).code = code;
        (*record).version = found.version;
        (*record).first_line = found.first_line;
        (*record).file_bytes = file[1] as u32;
        (*record).name_bytes = name[1] as u32;
        (*record).lines_bytes = lines_bytes as u32;
        [(*record).file_width, (*record).name_width] = found.widths;
        let is_read = process::copy_checked(&found.pieces, at.add(FIXED_BYTES));
        (*record).head.kind = if is_read { RECORD_CODE } else { 0 };
        (*record).head.record_bytes.store(record_bytes as u32, Ordering::Release);
        is_read
    };
    if !is_read {
        unread();
        return None;
    }
    Some(code)
}

/// Returns the next number, with room for its record. `None` if there is no room, which is counted.
fn numbered(record_bytes: usize) -> Option<(u32, *mut u8)> {
    let codes = &process::header().scripts.codes;
    let code = codes.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
    // SAFETY: the memory of this process.
    let place = if code <= CODE_MAX { unsafe { reserve(process::shared(), record_bytes) } } else { None };
    if place.is_none() {
        unread();
    }
    Some((code, place?))
}

/// Logs inlined frames, innermost first, each by its code's number and its place, and returns their number. `None` if
/// there is no room, which is counted.
#[inline(never)]
pub fn log_chain(frames: &[[u32; 2]]) -> Option<u32> {
    const FIXED_BYTES: usize = size_of::<ChainRecord>();
    let record_bytes = FIXED_BYTES + size_of_val(frames);
    let (code, at) = numbered(record_bytes)?;
    // SAFETY: the reservation is ours alone and lies within the log.
    unsafe {
        let record = at.cast::<ChainRecord>();
        (*record).code = code;
        (*record).count = frames.len() as u32;
        core::ptr::copy_nonoverlapping(frames.as_ptr(), at.add(FIXED_BYTES).cast(), frames.len());
        (*record).head.kind = RECORD_CHAIN;
        (*record).head.runtime = RUNTIME_HOTSPOT;
        (*record).head.record_bytes.store(record_bytes as u32, Ordering::Release);
    }
    Some(code)
}

/// Counts code whose frames are left out.
#[cold]
pub fn unread() {
    process::header().scripts.codes_unread.fetch_add(1, Ordering::Relaxed);
}

/// A module that is a runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    /// [`RUNTIME_CPYTHON`], [`RUNTIME_RUBY`], [`RUNTIME_HOTSPOT`].
    pub runtime: u16,
    /// Major version `<< 8 |` minor version; 0 when it is not known.
    pub version: u32,
    /// [`READ`], or why not.
    pub unread: u32,
    /// Where the function that interprets lies, as in [`RuntimeRecord::interpreter`].
    pub interpreter: [[u64; 2]; 2],
}

/// Logs a runtime.
///
/// # Safety
/// `shared` is a mapping of shared memory.
pub unsafe fn log_runtime(shared: *mut u8, met: &Met) {
    let record_bytes = size_of::<RuntimeRecord>();
    // SAFETY: by contract; the reservation is ours alone and lies within the log.
    unsafe {
        let Some(at) = reserve(shared, record_bytes) else { return };
        let record = at.cast::<RuntimeRecord>();
        (*record).head.kind = RECORD_RUNTIME;
        (*record).head.runtime = met.runtime;
        (*record).version = met.version;
        (*record).unread = met.unread;
        (*record).interpreter = met.interpreter;
        (*record).head.record_bytes.store(record_bytes as u32, Ordering::Release);
    }
}

/// Takes room at the end of the log; none when it is full.
unsafe fn reserve(shared: *mut u8, record_bytes: usize) -> Option<*mut u8> {
    // SAFETY: by contract of the callers it begins with a header, and the log lies in it.
    let (reserved, log) =
        unsafe { (&(*shared.cast::<Header>()).scripts.log_reserved, shared.add(CODES_OFFSET)) };
    // SAFETY: as above; lengths are multiples of 8.
    let offset = unsafe { log_room::take(reserved, log, CODE_LOG_BYTES, record_bytes) }?;
    // SAFETY: within the log.
    Some(unsafe { log.add(offset) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_has_its_number_until_it_dies() {
        let address = |at: usize| 0x7f00_0000_0000 + at * ALIGN;
        for at in 0..1000 {
            keep(address(at), at as u32 + 1);
        }
        let known = (0..1000).filter(|at| number(address(*at)) == Some(*at as u32 + 1)).count();
        assert!(known > 990, "{known}");
        let before = generation();
        assert_eq!(number(address(5)), Some(6));
        forget(address(5));
        assert_eq!((number(address(5)), generation()), (None, before + 1));
        assert_eq!((keep(address(5), CODE_MAX), number(address(5))), (CODE_MAX, Some(CODE_MAX)));
        assert_eq!(
            (keep(address(5), 7), number(address(5))),
            (CODE_MAX, Some(CODE_MAX)),
            "another thread was first"
        );
        keep_state(address(2000));
        let (before, deaths) = (generation(), state_deaths());
        freed(address(2000));
        assert_eq!((number(address(2000)), generation(), state_deaths()), (None, before, deaths + 1));
        watch(address(9));
        freed(address(9));
        assert_eq!((number(address(9)), generation(), state_deaths()), (None, before + 1, deaths + 1));
        freed(address(9));
        freed(address(11));
        assert_eq!((generation(), number(address(11))), (before + 1, Some(12)), "nobody watches it");
        forget_all();
        assert_eq!((0..1000).find_map(|at| number(address(at))), None);
    }
}
