//! The shared memory: opened once in each process, and its slots.

use crate::kernel;
use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use mallow_recorder::{session, sys};
use mallow_wire::timers::{
    FREE, FULL, HEADER_BYTES, Header, MAGIC, Note, REGIONS, Region, SLOT_HEAD_BYTES, SlotHead, THREAD_SHIFT,
    VARIABLE, WRITING, region_offset, slot_bytes, slots_bytes,
};

/// What the process was given. A forked child has it too.
static MEMORY: AtomicPtr<Header> = AtomicPtr::new(core::ptr::null_mut());
/// Its size: what the header says may change under us.
static SLOTS: AtomicUsize = AtomicUsize::new(0);
static ROOM_BYTES: AtomicU32 = AtomicU32::new(0);
static PERIOD_NS: AtomicU64 = AtomicU64::new(0);
static TICK_NS: AtomicU64 = AtomicU64::new(0);
static WAY: AtomicU32 = AtomicU32::new(0);

/// The longest path of the memory.
const PATH_BYTES_MAX: usize = 64;
/// What room for copies makes sense.
const ROOM_MAX: u32 = 64 << 10;

/// The memory of this process.
#[derive(Clone, Copy)]
pub(crate) struct Memory {
    header: &'static Header,
}

/// A slot that this thread writes.
pub(crate) struct Slot {
    head: *mut SlotHead,
    tid: u32,
}

/// The memory, when this process has one and somebody reads it.
pub(crate) fn memory() -> Option<Memory> {
    let header = MEMORY.load(Ordering::Acquire);
    // SAFETY: it stays mapped.
    (!header.is_null()).then(|| Memory { header: unsafe { &*header } })
}

/// The memory of a process that needs it for once, and has no samples in it otherwise; none when there is none. It is not kept.
pub(crate) fn open_if_needed() -> Option<Memory> {
    memory().or_else(|| {
        let file = open_named(VARIABLE, kernel::open_shared)?;
        let mapped = map(file, |_| true);
        sys::close(file);
        Some(Memory { header: mapped? })
    })
}

/// Opens the file that a variable names; none when there is none.
pub(crate) fn open_named(variable: &str, open: impl FnOnce(&CStr) -> isize) -> Option<i32> {
    let named = session::variable(variable)?;
    let mut path = [0u8; PATH_BYTES_MAX];
    let room = path.get_mut(..named.len())?;
    room.iter_mut().zip(named).for_each(|(place, byte)| *place = *byte);
    let file = open(CStr::from_bytes_until_nul(&path).ok()?);
    (file >= 0).then_some(file as i32)
}

/// Maps the memory that the environment names; none when there is none, or `is_wanted` says no to its way.
pub(crate) fn open(is_wanted: impl FnOnce(u32) -> bool) -> Option<Memory> {
    let file = open_named(VARIABLE, kernel::open_shared)?;
    let mapped = map(file, is_wanted);
    sys::close(file);
    let header = mapped?;
    MEMORY.store(core::ptr::from_ref(header).cast_mut(), Ordering::Release);
    Some(Memory { header })
}

fn map(file: i32, is_wanted: impl FnOnce(u32) -> bool) -> Option<&'static Header> {
    const WORDS: usize = 5;
    let mut head = [0u64; WORDS];
    // SAFETY: words may be written as bytes.
    let bytes = unsafe { core::slice::from_raw_parts_mut(head.as_mut_ptr().cast::<u8>(), WORDS * 8) };
    if sys::read_at(file, 0, bytes) != (WORDS * 8) as isize {
        return None;
    }
    let [magic, sizes, period_ns, tick_ns, way] = head;
    let way = (way >> 32) as u32;
    let (slots, room_bytes) = (sizes as u32, (sizes >> 32) as u32);
    if magic != MAGIC || slots == 0 || room_bytes == 0 || room_bytes > ROOM_MAX || period_ns == 0 {
        return None;
    }
    if !is_wanted(way) {
        return None;
    }
    let at = sys::map_shared(file, slots_bytes(slots, room_bytes)?);
    if at.is_null() {
        return None;
    }
    SLOTS.store(slots as usize, Ordering::Relaxed);
    ROOM_BYTES.store(room_bytes, Ordering::Relaxed);
    PERIOD_NS.store(period_ns, Ordering::Relaxed);
    TICK_NS.store(tick_ns, Ordering::Relaxed);
    WAY.store(way, Ordering::Relaxed);
    // SAFETY: the mapping is as long as the sizes say, aligned to a page, and is never given back; mallow has sealed the file's length.
    Some(unsafe { &*at.cast::<Header>() })
}

impl Memory {
    /// The time between two samples of a thread.
    pub(crate) fn period_ns(self) -> u64 {
        PERIOD_NS.load(Ordering::Relaxed)
    }

    /// The time between two expiries as the kernel has it.
    pub(crate) fn tick_ns(self) -> u64 {
        TICK_NS.load(Ordering::Relaxed)
    }

    /// How many filters of system calls mallow is behind.
    pub(crate) fn filters(self) -> u32 {
        self.header.filters
    }

    /// How samples are made.
    pub(crate) fn way(self) -> u32 {
        WAY.load(Ordering::Relaxed)
    }

    /// The regions.
    pub(crate) fn regions(self) -> &'static [Region; REGIONS] {
        &self.header.regions
    }

    /// Where a region lies in the file.
    pub(crate) fn region_offset(self, region: usize) -> Option<usize> {
        region_offset(SLOTS.load(Ordering::Relaxed) as u32, ROOM_BYTES.load(Ordering::Relaxed), region)
    }

    /// Nobody reads any more.
    pub(crate) fn is_over(self) -> bool {
        self.header.is_over.load(Ordering::Relaxed) != 0
    }

    /// Counts.
    pub(crate) fn count(self, counter: impl Fn(&Header) -> &AtomicU64) {
        counter(self.header).fetch_add(1, Ordering::Relaxed);
    }

    /// A free slot, for this thread; none when all are taken.
    pub(crate) fn claim(self, tid: u32) -> Option<Slot> {
        let (slots, bytes) = (SLOTS.load(Ordering::Relaxed), slot_bytes(ROOM_BYTES.load(Ordering::Relaxed)));
        let first = core::ptr::from_ref(self.header).cast_mut().cast::<u8>().wrapping_add(HEADER_BYTES);
        let mine = tid << THREAD_SHIFT | WRITING;
        // From the first on: those that are used stay few, and in the caches.
        for number in 0..slots {
            let head = first.wrapping_add(number * bytes).cast::<SlotHead>();
            // SAFETY: within the mapping by its size; a state is only ever used as an atomic number.
            let state = unsafe { &(*head).state };
            if state.load(Ordering::Relaxed) == FREE
                && state.compare_exchange(FREE, mine, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                return Some(Slot { head, tid });
            }
        }
        None
    }
}

impl Slot {
    /// Where a copy goes, and how much there is room for.
    pub(crate) fn room(&self) -> (*mut u8, usize) {
        let room = ROOM_BYTES.load(Ordering::Relaxed) as usize;
        (self.head.cast::<u8>().wrapping_add(SLOT_HEAD_BYTES), room)
    }

    /// Writes the note, but for the thread's number, and hands the slot over.
    pub(crate) fn publish(self, note: Note) {
        // SAFETY: the slot is this thread's until its state changes, last.
        unsafe {
            (&raw mut (*self.head).note).write(Note { tid: self.tid, ..note });
            (*self.head).state.store(self.tid << THREAD_SHIFT | FULL, Ordering::Release);
        }
    }
}
