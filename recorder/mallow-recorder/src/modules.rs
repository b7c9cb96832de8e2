//! The module log: which file was mapped where, written when its code is first seen on a stack.

use crate::bounds::{at, at_mut, first};
use crate::elf;
use crate::log_room;
use crate::objects::Object;
use crate::process;
use crate::sys;
use crate::unloads;
use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use mallow_wire::shared::*;

/// Modules that have been logged, by the hash of start and generation. A collision only logs a module twice.
static LOGGED: [AtomicU64; 1024] = [const { AtomicU64::new(0) }; 1024];
/// Their offsets in the log, plus 1, by the hash of start and path. A collision only writes a module twice.
static WRITTEN: [AtomicU32; 512] = [const { AtomicU32::new(0) }; 512];
/// Behind the last whole record. Not in the shared memory: what the parent of a forked child logs later is not the child's.
static LOG_END: AtomicUsize = AtomicUsize::new(0);

/// The longest path that is kept.
const PATH_BYTES_MAX: usize = 1024;
/// A constant of the hash function.
const SALT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Logs an object unless that was done in this generation: the one since which one of its addresses means what it means. Whether it was new.
#[inline(never)]
pub fn log(object: &Object, generation: u64) -> bool {
    const ADDRESS_BITS: u32 = 48;
    const { assert!(GENERATION_COUNT <= 1 << (u64::BITS - ADDRESS_BITS)) };
    let mark = (object.start as u64 & ((1 << ADDRESS_BITS) - 1)) | generation << ADDRESS_BITS;
    let slot = at(&LOGGED, (mark.wrapping_mul(SALT) >> 54) as usize);
    if slot.load(Ordering::Relaxed) == mark || !process::is_ready() {
        return false;
    }
    append(object, generation);
    slot.store(mark, Ordering::Relaxed);
    true
}

/// The executable's path, which the loader leaves empty. Stored, because a call on a small stack has no room to read
/// it, and after a seccomp filter it cannot be read.
struct Executable {
    path: UnsafeCell<[u8; PATH_BYTES_MAX]>,
    bytes: AtomicUsize,
}

// SAFETY: the path is written as the process begins, when no other thread reads it, or later by the kernel, always the same bytes; the length is stored
// behind them.
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
            // SAFETY: as below.
            let path = unsafe { core::slice::from_raw_parts_mut(at, PATH_BYTES_MAX) };
            if is_loader(first(path, bytes)) {
                bytes = mapped_executable(path).unwrap_or(bytes);
            }
            self.bytes.store(bytes, Ordering::Release);
        }
        // SAFETY: the kernel wrote so many.
        unsafe { core::slice::from_raw_parts(at, bytes.min(PATH_BYTES_MAX)) }
    }
}

/// Whether a program's name is that of a loader, which was told what to run.
fn is_loader(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    [&b"ld-"[..], b"ld.", b"libc."].iter().any(|start| name.starts_with(start))
}

/// Writes the path of the first object according to `/proc/self/maps`; returns its length.
#[cold]
#[inline(never)]
fn mapped_executable(into: &mut [u8]) -> Option<usize> {
    let mut address = 0;
    elf::each_object(|object| {
        address = object.dynamic();
        true
    });
    let file = sys::open_read(c"/proc/self/maps");
    if file < 0 {
        return None;
    }
    let bytes =
        sys::Scratch::map().and_then(|mut page| path_around(file as i32, address, page.bytes(), into));
    sys::close(file as i32);
    bytes
}

/// Reads the lines of a map into `text`, as many as it holds, until one surrounds the address.
fn path_around(
    file: i32,
    address: usize,
    text: &mut [u8; sys::Scratch::BYTES],
    into: &mut [u8],
) -> Option<usize> {
    let mut held = 0;
    loop {
        let room = text.get_mut(held..).filter(|room| !room.is_empty())?;
        let read = usize::try_from(sys::read(file, room)).ok().filter(|read| *read > 0)?;
        held += read;
        let whole = first(text, held).iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut lines = first(text, whole).split(|byte| *byte == b'\n');
        if let Some(path) = lines.find_map(|line| path_if_around(line, address)) {
            into.iter_mut().zip(path).for_each(|(place, byte)| *place = *byte);
            return Some(path.len().min(into.len()));
        }
        for index in whole..held {
            *at_mut(text, index - whole) = *at(text, index);
        }
        held -= whole;
    }
}

/// The path at the end of a line whose addresses surround one.
fn path_if_around(line: &[u8], address: usize) -> Option<&[u8]> {
    let digit = |value: usize, byte: &u8| Some(value << 4 | char::from(*byte).to_digit(16)? as usize);
    let hex = |digits: &[u8]| digits.iter().try_fold(0, digit);
    let mut bounds = line.split(|byte| *byte == b' ').next()?.split(|byte| *byte == b'-').map(hex);
    let (start, end) = (bounds.next()??, bounds.next()??);
    let path = line.get(line.iter().position(|byte| *byte == b'/')?..)?;
    (start..end).contains(&address).then_some(path)
}

/// The path of the executable, if it is known.
pub(crate) fn executable() -> &'static [u8] {
    EXECUTABLE.path()
}

/// Stores where the executable is mapped, while that can be determined.
pub fn note_executable() {
    EXECUTABLE.path();
}

fn append(object: &Object, generation: u64) {
    // SAFETY: a loaded object's name is a string that lives as long as the object.
    let name = unsafe { CStr::from_ptr(object.name) }.to_bytes();
    let is_executable = name.is_empty() || name == NAME_BY_MUSL;
    let path = if is_executable { EXECUTABLE.path() } else { first(name, name.len().min(PATH_BYTES_MAX)) };
    // SAFETY: `start` is the object's first byte, and a build id lies in it.
    let build_id = unsafe {
        let (start, bytes) =
            elf::build_id(object.start, object.bias).unwrap_or((NonNull::dangling().as_ptr(), 0));
        core::slice::from_raw_parts(start, bytes.min(64))
    };
    let hash =
        path.iter().fold(object.start as u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(SALT));
    let place = at(&WRITTEN, (hash >> 55) as usize);
    let before = place.load(Ordering::Acquire);
    if before != 0 && is_at(before as usize - 1, object, path, build_id) {
        append_again(before - 1, generation);
    } else if let Some(offset) = append_whole(object, path, build_id, generation) {
        place.store(offset as u32 + 1, Ordering::Release);
    }
}

/// The path of a static executable, according to musl.
const NAME_BY_MUSL: &[u8] = b"/proc/self/exe";

/// Returns whether the record at an offset is one of this module. Without a build id, another file may have its path by now.
fn is_at(offset: usize, object: &Object, path: &[u8], build_id: &[u8]) -> bool {
    // SAFETY: a whole record of ours begins there.
    unsafe {
        let at = process::shared().add(MODULES_OFFSET + offset);
        let record = &*at.cast::<ModuleRecord>();
        let text = at.add(size_of::<ModuleRecord>());
        let is_same = (record.start_avma, record.end_avma, record.bias)
            == (object.start as u64, object.end as u64, object.bias as u64)
            && (record.path_bytes as usize, record.build_id_bytes as usize) == (path.len(), build_id.len());
        is_same
            && !build_id.is_empty()
            && core::slice::from_raw_parts(text, path.len()) == path
            && core::slice::from_raw_parts(text.add(path.len()), build_id.len()) == build_id
    }
}

fn append_whole(object: &Object, path: &[u8], build_id: &[u8], generation: u64) -> Option<usize> {
    let record_bytes = (size_of::<ModuleRecord>() + path.len() + build_id.len()).next_multiple_of(8);
    let (offset, at) = reserve(record_bytes)?;
    // SAFETY: the reservation is ours alone and lies within the log.
    unsafe {
        let record = at.cast::<ModuleRecord>();
        (*record).path_bytes = path.len() as u16;
        (*record).build_id_bytes = build_id.len() as u16;
        (*record).generation = generation;
        (*record).start_avma = object.start as u64;
        (*record).end_avma = object.end as u64;
        (*record).bias = object.bias as u64;
        let text = at.add(size_of::<ModuleRecord>());
        core::ptr::copy_nonoverlapping(path.as_ptr(), text, path.len());
        core::ptr::copy_nonoverlapping(build_id.as_ptr(), text.add(path.len()), build_id.len());
        (*record).record_bytes.store(record_bytes as u32, Ordering::Release);
    }
    LOG_END.fetch_max(offset + record_bytes, Ordering::Release);
    Some(offset)
}

fn append_again(before: u32, generation: u64) {
    let record_bytes = size_of::<ModuleAgain>();
    let Some((offset, at)) = reserve(record_bytes) else { return };
    // SAFETY: the reservation is ours alone and lies within the log.
    unsafe {
        let record = at.cast::<ModuleAgain>();
        (*record).offset = before;
        (*record).generation = generation;
        (*record).record_bytes.store(record_bytes as u32, Ordering::Release);
    }
    LOG_END.fetch_max(offset + record_bytes, Ordering::Release);
}

/// Takes room at the end of the log, counted from its beginning; none when it is full, which is counted.
fn reserve(record_bytes: usize) -> Option<(usize, *mut u8)> {
    let header = process::header();
    // SAFETY: the log lies there in the shared memory, which is new where nobody has taken room.
    let log = unsafe { process::shared().add(MODULES_OFFSET) };
    // SAFETY: as above; lengths are multiples of 8.
    let offset = unsafe { log_room::take(&header.modules_reserved, log, MODULE_LOG_BYTES, record_bytes) };
    let Some(offset) = offset else {
        header.modules_unlogged.fetch_add(1, Ordering::Relaxed);
        return None;
    };
    // SAFETY: within the log.
    Some((offset, unsafe { log.add(offset) }))
}

/// Copies the log of the process that this one was forked from, as it was then: its modules are still mapped, and its marks
/// are inherited.
///
/// # Safety
/// `old` and `new` are mappings of shared memory.
pub unsafe fn inherit(old: *const u8, new: *mut u8) {
    // SAFETY: by contract; both logs have the same size.
    unsafe {
        let (from, to) = (&*old.cast::<Header>(), &*new.cast::<Header>());
        let used = LOG_END.load(Ordering::Acquire).min(MODULE_LOG_BYTES);
        let log = new.add(MODULES_OFFSET);
        core::ptr::copy_nonoverlapping(old.add(MODULES_OFFSET), log, used);
        let whole = whole_bytes(log, used);
        if whole < used {
            // Another thread of the parent was writing a record. Records after it have marks, and cannot be reached.
            LOGGED.iter().for_each(|mark| mark.store(0, Ordering::Relaxed));
            WRITTEN.iter().for_each(|offset| offset.store(0, Ordering::Relaxed));
            log.add(whole).write_bytes(0, used - whole);
        }
        to.modules_reserved.store(whole as u64, Ordering::Release);
        to.modules_unlogged.store(from.modules_unlogged.load(Ordering::Relaxed), Ordering::Relaxed);
        to.generation.store(unloads::generation(), Ordering::Relaxed);
    }
}

/// Returns whether a record of so many bytes is there; one that is not filled has a mark in its length.
fn is_length(bytes: usize) -> bool {
    bytes >= size_of::<ModuleAgain>() && bytes.is_multiple_of(8) && bytes & UNFILLED as usize == 0
}

/// Returns up to which offset the records of a log have no gap.
///
/// # Safety
/// So many bytes of a log are there.
unsafe fn whole_bytes(log: *const u8, used: usize) -> usize {
    let mut whole = 0;
    while whole + size_of::<ModuleAgain>() <= used {
        // SAFETY: within the log; each record begins with its length.
        match unsafe { &*log.add(whole).cast::<AtomicU32>() }.load(Ordering::Acquire) as usize {
            bytes if is_length(bytes) => whole += bytes,
            _ => break,
        }
    }
    whole.min(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the length without a gap of a log whose first 120 bytes are used. Records are (start, length).
    fn reach(records: [(usize, u64); 3]) -> usize {
        let mut words = [0; 64];
        records.iter().for_each(|(start, bytes)| words[start / 8] = *bytes);
        // SAFETY: a log of 512 bytes.
        unsafe { whole_bytes(words.as_mut_ptr().cast(), 120) }
    }

    #[test]
    #[cfg_attr(miri, ignore = "reads /proc")]
    fn the_file_of_an_address_is_found_in_the_map() {
        let own = std::env::current_exe().unwrap();
        let mut text = [0; sys::Scratch::BYTES];
        let mut path = [0; PATH_BYTES_MAX];
        // This test's code, and the C library's, whose lines are on a later page of the map than its first.
        let places = [(reach as *const (), own.to_str().unwrap()), (libc_function(), "libc")];
        for (address, name) in places {
            let file = sys::open_read(c"/proc/self/maps");
            let bytes = path_around(file as i32, address as usize, &mut text, &mut path).unwrap();
            sys::close(file as i32);
            assert!(core::str::from_utf8(&path[..bytes]).unwrap().contains(name), "{name}");
        }
    }

    #[test]
    fn a_line_of_the_map_has_bounds_and_a_path() {
        let line = b"7f0000001000-7f0000002000 r-xp 00000000 fe:00 12     /a folder/app";
        assert_eq!(path_if_around(line, 0x7f00_0000_1fff), Some(&b"/a folder/app"[..]));
        assert_eq!(path_if_around(line, 0x7f00_0000_2000), None);
        assert_eq!(path_if_around(b"7f00-7f10 rw-p 0 00:00 0 [heap]", 0x7f08), None);
        assert_eq!(
            [&b"/lib64/ld-linux-x86-64.so.2"[..], b"/bin/ld", b"/app"].map(is_loader),
            [true, false, false]
        );
    }

    fn libc_function() -> *const () {
        unsafe extern "C" {
            fn getpid() -> i32;
        }
        getpid as *const ()
    }

    #[test]
    fn a_log_reaches_to_its_first_gap() {
        assert_eq!(reach([(0, 40), (40, 16), (56, 64)]), 120);
        assert_eq!(reach([(0, 40), (40, 0), (56, 64)]), 40);
        assert_eq!(reach([(0, 0), (40, 16), (56, 64)]), 0);
        assert_eq!(reach([(0, 40), (40, 16), (56, 400)]), 120);
        assert_eq!(reach([(0, 40), (40, 7), (56, 64)]), 40);
        assert_eq!(reach([(0, 40), (40, u64::from(16 | UNFILLED)), (56, 64)]), 40);
    }
}
