//! The memory that the command's processes write into, from our side: slots, and regions with logs of code.

use mallow_launch::started::clock_ahead_ns;
use mallow_scripts::CodeLog;
use mallow_wire::script::{CODE_LOG_BYTES, Scripts};
use mallow_wire::shared::PAGE_BYTES;
use mallow_wire::timers::{
    FREE, FULL, HEADER_BYTES, Header, MAGIC, Note, REGION_BYTES, REGIONS, Region, SCRIPT, SLOT_HEAD_BYTES,
    SlotHead, THREAD_SHIFT, WRITING, memory_bytes, region_offset, slot_bytes, slots_bytes,
};
use memmap2::{MmapOptions, MmapRaw};
use rustc_hash::{FxHashMap, FxHashSet};
use rustix::fs::{
    FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, fstat, ftruncate, memfd_create,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// The memory.
pub(crate) struct Memory {
    map: MmapRaw,
    file: OwnedFd,
    slots: u32,
    room_bytes: u32,
    /// Slots that were being written at the last check, with the writer.
    writers: Vec<u32>,
    /// Processes whose clock was not ours when it was seen last, and how far it was ahead.
    clocks_ahead_ns: FxHashMap<u32, i64>,
}

/// Constants of the header.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Head {
    pub(crate) period_ns: u64,
    pub(crate) tick_ns: u64,
    pub(crate) filters: u32,
    pub(crate) way: u32,
}

/// Returns how many seccomp filters mallow itself has; 0 if the kernel does not say.
pub(crate) fn own_filters() -> u32 {
    filters(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
}

fn filters(status: &str) -> u32 {
    let number = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
    number.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

/// The contents of a slot.
pub(crate) struct SlotContents {
    pub(crate) note: Note,
    pub(crate) copy: Vec<u8>,
}

impl Memory {
    /// Creates a memory that no other process has yet; its size is sealed. Counters begin at 0.
    pub(crate) fn create(slots: u32, room_bytes: u32, head: Head) -> io::Result<Memory> {
        let bytes = memory_bytes(slots, room_bytes).ok_or(io::ErrorKind::OutOfMemory)?;
        let file = memfd_create("mallow-timers", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, bytes as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let mapped_bytes = slots_bytes(slots, room_bytes).ok_or(io::ErrorKind::OutOfMemory)?;
        let map = MmapOptions::new().len(mapped_bytes).map_raw(&file)?;
        let header = map.as_mut_ptr().cast::<Header>();
        // SAFETY: the mapping is larger than a header, aligned to a page and zeroed, which is right for all the rest, and nobody else has it yet.
        unsafe {
            (*header).magic = MAGIC;
            (*header).slots = slots;
            (*header).room_bytes = room_bytes;
            (*header).period_ns = head.period_ns;
            (*header).tick_ns = head.tick_ns;
            (*header).filters = head.filters;
            (*header).way = head.way;
        }
        let (writers, clocks_ahead_ns) = (vec![FREE; slots as usize], FxHashMap::default());
        Ok(Memory { map, file, slots, room_bytes, writers, clocks_ahead_ns })
    }

    /// Returns the path by which other processes of this user open it.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// Returns its constants and counters.
    pub(crate) fn header(&self) -> &Header {
        // SAFETY: as in `create`. Only its counters are read, which are atomic.
        unsafe { &*self.map.as_ptr().cast::<Header>() }
    }

    /// Returns the owners of regions, and requests to them.
    pub(crate) fn regions(&self) -> &[Region; REGIONS] {
        &self.header().regions
    }

    /// Maps a region's log of code.
    pub(crate) fn log(&self, region: u32) -> io::Result<RegionLog> {
        let region = (region as usize).min(REGIONS - 1);
        let offset = region_offset(self.slots, self.room_bytes, region).ok_or(io::ErrorKind::OutOfMemory)?;
        let map = MmapOptions::new().offset(offset as u64).len(REGION_BYTES).map_raw(&self.file)?;
        Ok(RegionLog { map })
    }

    /// Releases a region, empty, for the next process.
    pub(crate) fn free(&self, region: u32) {
        let Some(of) = self.regions().get(region as usize) else { return };
        let offset = region_offset(self.slots, self.room_bytes, region as usize).unwrap_or(0);
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // One that cannot be emptied stays taken.
        if offset > 0 && fallocate(&self.file, flags, offset as u64, REGION_BYTES as u64).is_ok() {
            of.state.store(0, Ordering::Relaxed);
            of.pid.store(0, Ordering::Release);
        }
    }

    /// Returns whether a process has mapped the memory, as one does that has our library in it.
    pub(crate) fn is_mapped_by(&self, pid: u32) -> bool {
        let Ok(found) = fstat(&self.file) else { return false };
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let number = found.st_ino.to_string();
        maps.lines().any(|line| {
            line.contains("/memfd:mallow-timers") && line.split_ascii_whitespace().nth(4) == Some(&number)
        })
    }

    fn slot(&self, number: usize) -> *mut u8 {
        self.map.as_mut_ptr().wrapping_add(HEADER_BYTES + number * slot_bytes(self.room_bytes))
    }

    /// Takes what is there, in the order of time, and frees its slots.
    pub(crate) fn take(&mut self) -> Vec<SlotContents> {
        let mut taken = Vec::new();
        for number in 0..self.slots as usize {
            let slot = self.slot(number);
            // SAFETY: slots lie within the mapping and are aligned to 8 bytes; a state is only used as an atomic number, by everybody.
            let state = unsafe { &(*slot.cast::<SlotHead>()).state };
            let seen = state.load(Ordering::Acquire);
            if seen == FREE {
                continue;
            }
            if seen & FULL != 0 {
                // SAFETY: within the mapping. Who hands a slot over leaves it alone; who does not can only harm what is read, which is copied before
                // it is looked at.
                let note = unsafe { (&raw const (*slot.cast::<SlotHead>()).note).read_volatile() };
                let bytes = note.bytes.min(self.room_bytes) as usize;
                let mut copy = vec![0; bytes];
                // SAFETY: a slot has this room behind its head.
                unsafe {
                    copy.as_mut_ptr().copy_from_nonoverlapping(slot.wrapping_add(SLOT_HEAD_BYTES), bytes)
                };
                taken.push(SlotContents { note, copy });
                state.store(FREE, Ordering::Release);
            } else {
                free_of_dead(state, seen, &mut self.writers[number]);
            }
        }
        self.set_by_our_clock(&mut taken);
        // A sample's script frames precede it.
        taken.sort_by_key(|taken| (taken.note.time_ns, taken.note.kind != SCRIPT));
        taken
    }

    /// A process in another time namespace has another clock. It may enter one at any time, and is asked again for each time that its notes are taken.
    fn set_by_our_clock(&mut self, taken: &mut [SlotContents]) {
        let mut asked = FxHashSet::default();
        for note in taken.iter_mut().map(|taken| &mut taken.note) {
            if asked.insert(note.pid) {
                match clock_ahead_ns(note.pid) {
                    Some(0) => _ = self.clocks_ahead_ns.remove(&note.pid),
                    Some(ahead_ns) => _ = self.clocks_ahead_ns.insert(note.pid, ahead_ns),
                    // It has ended, and what was known last is right.
                    None => {}
                }
            }
            let ahead_ns = self.clocks_ahead_ns.get(&note.pid).copied().unwrap_or(0);
            note.time_ns = note.time_ns.saturating_add_signed(ahead_ns.saturating_neg());
        }
    }
}

/// A thread that dies while it writes never ends that: its slot is free when it is gone.
fn free_of_dead(state: &AtomicU32, seen: u32, before: &mut u32) {
    let is_same = std::mem::replace(before, seen) == seen;
    if is_same && seen & WRITING != 0 && !is_alive(seen >> THREAD_SHIFT) {
        let _ = state.compare_exchange(seen, FREE, Ordering::Release, Ordering::Relaxed);
    }
}

/// A region's log of code.
#[derive(Debug)]
pub(crate) struct RegionLog {
    map: MmapRaw,
}

impl CodeLog for RegionLog {
    fn counted(&self) -> &Scripts {
        let offset = std::mem::offset_of!(mallow_wire::shared::Header, scripts);
        // SAFETY: a region begins with a page that is laid out as a recorded process's header, of which only the atomics of scripts are used.
        unsafe { &*self.map.as_ptr().add(offset).cast::<Scripts>() }
    }

    fn length(&self, offset: usize) -> &AtomicU32 {
        assert!(offset.is_multiple_of(4) && offset + 4 <= CODE_LOG_BYTES);
        // SAFETY: within the log by the check above, and an atomic.
        unsafe { &*self.map.as_ptr().add(PAGE_BYTES + offset).cast::<AtomicU32>() }
    }

    fn copied(&self, offset: usize, bytes: usize) -> Vec<u8> {
        assert!(offset.checked_add(bytes).is_some_and(|end| end <= CODE_LOG_BYTES));
        let mut copy = vec![0; bytes];
        // SAFETY: within the log by the check above. Who writes there meanwhile can only harm what is read, which is copied before it is looked at.
        unsafe {
            copy.as_mut_ptr().copy_from_nonoverlapping(self.map.as_ptr().add(PAGE_BYTES + offset), bytes);
        }
        copy
    }
}

fn is_alive(tid: u32) -> bool {
    std::path::Path::new(&format!("/proc/{tid}")).exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_wire::timers::SAMPLE;

    fn memory() -> Memory {
        let header = Head { period_ns: 1, tick_ns: 1, ..Head::default() };
        Memory::create(4, 64, header).unwrap()
    }

    fn state(memory: &Memory, number: usize) -> &AtomicU32 {
        // SAFETY: as in `take`.
        unsafe { &(*memory.slot(number).cast::<SlotHead>()).state }
    }

    fn fill(memory: &Memory, number: usize, time_ns: u64, bytes: u32) {
        let slot = memory.slot(number);
        let note = Note { kind: SAMPLE, bytes, time_ns, ..Note::default() };
        // SAFETY: as in `take`.
        unsafe { (&raw mut (*slot.cast::<SlotHead>()).note).write(note) };
        state(memory, number).store(7 << THREAD_SHIFT | FULL, Ordering::Release);
    }

    #[test]
    fn what_is_full_is_taken_once_in_the_order_of_time() {
        let mut memory = memory();
        fill(&memory, 3, 10, 8);
        fill(&memory, 0, 20, 64);
        let told = |taken: Vec<SlotContents>| -> Vec<(u64, usize)> {
            taken.iter().map(|taken| (taken.note.time_ns, taken.copy.len())).collect()
        };
        assert_eq!(told(memory.take()), [(10, 8), (20, 64)]);
        assert_eq!(told(memory.take()), []);
        // A program may write anything there.
        fill(&memory, 1, 30, u32::MAX);
        assert_eq!(told(memory.take()), [(30, 64)]);
    }

    #[test]
    fn a_slot_of_who_died_is_free_again_and_one_that_is_written_is_not() {
        let mut memory = memory();
        let mut dead = std::process::Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        let states = [dead.id(), std::process::id()].map(|tid| tid << THREAD_SHIFT | WRITING);
        for (number, value) in states.into_iter().enumerate() {
            state(&memory, number).store(value, Ordering::Relaxed);
        }
        let seen = |memory: &Memory| [0, 1].map(|number| state(memory, number).load(Ordering::Relaxed));
        // It may have just died, and what it wrote is valid; it is checked twice.
        assert_eq!((memory.take().len(), seen(&memory)), (0, states));
        assert_eq!((memory.take().len(), seen(&memory)), (0, [FREE, states[1]]));
    }

    #[test]
    fn filters_are_read_from_the_status() {
        assert_eq!(filters("Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t3\n"), 3);
        assert_eq!((filters(""), filters("Seccomp:\t2\n")), (0, 0));
    }

    #[test]
    fn its_size_stays() {
        let memory = memory();
        assert!(ftruncate(&memory.file, 0).is_err() && ftruncate(&memory.file, 1 << 20).is_err());
    }
}
