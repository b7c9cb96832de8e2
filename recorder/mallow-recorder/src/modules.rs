//! The module log: which library was mapped where, written when its code is first met on a stack.

use crate::elf;
use crate::objects::Object;
use crate::process;
use crate::sys;
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use mallow_wire::shared::{MODULE_LOG_BYTES, MODULES_OFFSET, ModuleRecord};

/// Modules that have been logged, by the hash of start and generation. A collision only logs a module twice.
static LOGGED: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];

/// The longest path that is kept.
const PATH_BYTES_MAX: usize = 1024;

/// Logs an object unless that was done in this generation: the one since which one of its addresses means what it means.
#[inline(never)]
pub fn log(object: &Object, generation: u64) {
    let mark = object.start as u64 | (generation & 0xfff);
    let slot = &LOGGED[(mark.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize];
    if slot.load(Ordering::Relaxed) == mark || !process::is_ready() {
        return;
    }
    append(object, generation);
    slot.store(mark, Ordering::Relaxed);
}

/// The executable's path, which the loader leaves empty. Kept, because a call on a small stack has no room for it, and one behind a
/// filter of system calls cannot ask.
struct Executable {
    path: UnsafeCell<[u8; PATH_BYTES_MAX]>,
    bytes: AtomicUsize,
}

// SAFETY: only the kernel writes the path, and whenever it does it writes the same bytes; the length is stored behind them.
unsafe impl Sync for Executable {}

static EXECUTABLE: Executable =
    Executable { path: UnsafeCell::new([0; PATH_BYTES_MAX]), bytes: AtomicUsize::new(0) };

impl Executable {
    fn path(&self) -> &[u8] {
        let at = self.path.get().cast::<u8>();
        let mut bytes = self.bytes.load(Ordering::Acquire);
        if bytes == 0 && !process::is_filtered() {
            // SAFETY: the room is that long.
            bytes = unsafe { sys::readlink(c"/proc/self/exe", at, PATH_BYTES_MAX) }.max(0) as usize;
            self.bytes.store(bytes, Ordering::Release);
        }
        // SAFETY: the kernel wrote so many.
        unsafe { core::slice::from_raw_parts(at, bytes.min(PATH_BYTES_MAX)) }
    }
}

/// The path of the executable, if it is known.
pub(crate) fn executable() -> &'static [u8] {
    EXECUTABLE.path()
}

/// Finds out where the executable lies, while that can be asked.
pub fn note_executable() {
    EXECUTABLE.path();
}

fn append(object: &Object, generation: u64) {
    // SAFETY: a loaded object's name is a string that lives as long as the object.
    let name = unsafe { CStr::from_ptr(object.name) }.to_bytes();
    let path = if name.is_empty() { EXECUTABLE.path() } else { &name[..name.len().min(PATH_BYTES_MAX)] };
    // SAFETY: `start` is the object's first byte.
    let (build_id, build_id_bytes) =
        unsafe { elf::build_id(object.start, object.bias) }.unwrap_or((core::ptr::null(), 0));
    let build_id_bytes = build_id_bytes.min(64);
    let record_bytes = (size_of::<ModuleRecord>() + path.len() + build_id_bytes).next_multiple_of(8);
    let Some(at) = reserve(record_bytes) else { return };
    // SAFETY: the reservation is ours alone and lies within the log.
    unsafe {
        let record = at.cast::<ModuleRecord>();
        (*record).path_bytes = path.len() as u16;
        (*record).build_id_bytes = build_id_bytes as u16;
        (*record).generation = generation;
        (*record).start_avma = object.start as u64;
        (*record).end_avma = object.end as u64;
        (*record).bias = object.bias as u64;
        let text = at.add(size_of::<ModuleRecord>());
        core::ptr::copy_nonoverlapping(path.as_ptr(), text, path.len());
        if build_id_bytes > 0 {
            core::ptr::copy_nonoverlapping(build_id, text.add(path.len()), build_id_bytes);
        }
        (*record).record_bytes.store(record_bytes as u32, Ordering::Release);
    }
}

/// Takes room at the end of the log; none when it is full.
fn reserve(record_bytes: usize) -> Option<*mut u8> {
    let offset =
        process::header().modules_reserved.fetch_add(record_bytes as u64, Ordering::Relaxed) as usize;
    if offset + record_bytes > MODULE_LOG_BYTES {
        return None;
    }
    // SAFETY: within the log by the check above.
    Some(unsafe { process::shared().add(MODULES_OFFSET + offset) })
}

/// Copies the log of the process that this one was forked from: its modules are still mapped, and its marks
/// are inherited.
///
/// # Safety
/// `old` and `new` are mappings of shared memory.
pub unsafe fn inherit(old: *const u8, new: *mut u8) {
    use mallow_wire::shared::Header;
    // SAFETY: by contract; both logs have the same size. A record that the parent was just writing has length
    // 0 in the copy and ends it early: the collector stops there.
    unsafe {
        let (from, to) = (&*old.cast::<Header>(), &*new.cast::<Header>());
        let used = (from.modules_reserved.load(Ordering::Acquire) as usize).min(MODULE_LOG_BYTES);
        core::ptr::copy_nonoverlapping(old.add(MODULES_OFFSET), new.add(MODULES_OFFSET), used);
        to.modules_reserved.store(used as u64, Ordering::Release);
    }
}
