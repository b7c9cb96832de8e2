//! Determines the bounds of a thread's own stack.
//!
//! The memo reads words that were on the stack during an earlier call, so it must know that they are still
//! mapped. That is true for everything between the stack pointer and the upper end of the thread's own stack, and for
//! no other memory. The range is therefore used only where its bounds are certain: the kernel's `[stack]` for
//! the main thread; for others a mapping with the thread's control block at its upper end, as glibc and musl lay stacks out. Its
//! lower end is what glibc has recorded in the control block, since a stack without a guard (a JVM makes its own guards later)
//! may have other memory next to it in the same mapping; without such a record, it is a guard below the mapping. Otherwise the
//! range is empty, and stacks are walked from scratch each time.

use crate::bounds::first;
use crate::process;
use crate::sys;
use crate::tls;
use mallow_wire::shared::PAGE_BYTES;

/// A thread's own stack; empty when its bounds are not certain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackRange {
    /// The lowest address.
    pub start: usize,
    /// Behind the highest address.
    pub end: usize,
}

/// `struct procmap_query` of Linux 6.11.
#[repr(C)]
#[derive(Default)]
struct ProcmapQuery {
    size: u64,
    query_flags: u64,
    query_address: u64,
    start: u64,
    end: u64,
    flags: u64,
    page_bytes: u64,
    offset: u64,
    inode: u64,
    device_major: u32,
    device_minor: u32,
    name_bytes: u32,
    build_id_bytes: u32,
    name_address: u64,
    build_id_address: u64,
}

/// A line of `/proc/self/maps`.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mapping {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) accessible: bool,
    pub(crate) is_main_stack: bool,
}

impl StackRange {
    /// Returns whether `address` lies in the range.
    #[inline(always)]
    pub fn holds(&self, address: usize) -> bool {
        address.wrapping_sub(self.start) < self.end - self.start
    }

    /// The stack of the calling thread, whose stack pointer is `sp`.
    pub fn of_this_thread(sp: usize) -> StackRange {
        let fd = sys::open_read(c"/proc/self/maps");
        if fd < 0 {
            return StackRange::default();
        }
        let (below, mapping) = query(fd as i32, sp).unwrap_or_else(|| parse(fd as i32, sp));
        sys::close(fd as i32);
        // SAFETY: the calling thread's control block lies at this address.
        judge(sp, below, mapping, tls::control_block(), |from, end| unsafe { block_start(from, end, sp) })
    }
}

/// Takes the range from the mapping around `sp` and the one below it; `recorded` finds the lowest address of the block in the control
/// block, which lies in the mapping that ends at its second argument.
fn judge(
    sp: usize,
    below: Mapping,
    mapping: Mapping,
    control_block: usize,
    recorded: impl Fn(usize, usize) -> Option<usize>,
) -> StackRange {
    if !(mapping.start..mapping.end).contains(&sp) {
        return StackRange::default();
    }
    if mapping.is_main_stack {
        // The kernel keeps other mappings away from the room that the limit allows; without a limit there is
        // no such room.
        const ROOM_BYTES_MAX: usize = 64 << 20;
        let room = sys::stack_limit_bytes().min(ROOM_BYTES_MAX);
        return StackRange { start: mapping.start.min(mapping.end.saturating_sub(room)), end: mapping.end };
    }
    if !(sp..mapping.end).contains(&control_block) {
        return StackRange::default();
    }
    let is_guarded = below.end == mapping.start && !below.accessible;
    // A guard may be another stack's, which lies below this one in the same mapping.
    let start = recorded(control_block, mapping.end).or(is_guarded.then_some(mapping.start));
    start.map_or(StackRange::default(), |start| StackRange {
        start: start.max(mapping.start),
        end: control_block & !7,
    })
}

/// Returns where the block of memory begins that glibc allocated for the thread whose control block begins at `from`.
/// The offset of that record differs from version to version, so it is searched for: three words, which are the
/// block's address, its length, and that of its guard. The block ends just after the control block, and contains
/// `sp`. `None` if there is no such record, or more than one in a page.
///
/// Behind the control block's first page there may be another thread's memory in the same mapping, which that thread may unmap now, or a guard of its
/// stack, which no mapping shows (glibc 2.42 on Linux 6.13): what lies there is read by checked copies.
///
/// # Safety
/// `from` is a control block of the calling thread.
unsafe fn block_start(from: usize, end: usize, sp: usize) -> Option<usize> {
    const CONTROL_BLOCK_BYTES_MAX: usize = 16 << 10;
    const PIECE_WORDS: usize = 32;
    const PIECE_BYTES: usize = PIECE_WORDS * 8;
    let behind = end.min(from.saturating_add(CONTROL_BLOCK_BYTES_MAX)) & !7;
    let own_end = (from | (PAGE_BYTES - 1)) + 1;
    let mut found = None;
    let (mut at, mut record) = (from & !7, [0usize; 3]);
    while at < behind {
        let piece_end = ((at | (PIECE_BYTES - 1)) + 1).min(behind);
        let mut piece = [0usize; PIECE_WORDS];
        let into = piece.as_mut_ptr().cast::<u8>();
        // SAFETY: there is room; the rest of the control block's first page is the thread's own.
        let is_read = unsafe {
            if piece_end <= own_end {
                core::ptr::copy_nonoverlapping(at as *const u8, into, piece_end - at);
                true
            } else {
                process::copy_checked(&[[at, piece_end - at]], into)
            }
        };
        if !is_read {
            break;
        }
        for word in first(&piece[..], (piece_end - at) / 8) {
            record = [record[1], record[2], *word];
            at += 8;
            let [start, bytes, guard] = record;
            let block_end = start.wrapping_add(bytes);
            let is_whole = (start | bytes | guard) % PAGE_BYTES == 0 && guard < bytes;
            let holds_us = start.wrapping_add(guard) <= sp && at <= block_end && block_end <= behind;
            if is_whole && holds_us && start != 0 && found.replace(start.wrapping_add(guard)).is_some() {
                return None;
            }
        }
        if found.is_some() && at.is_multiple_of(PAGE_BYTES) {
            break;
        }
    }
    found
}

/// Asks the kernel for the two mappings; none before Linux 6.11.
fn query(fd: i32, sp: usize) -> Option<(Mapping, Mapping)> {
    let mapping = query_one(fd, sp)?;
    let below = query_one(fd, mapping.start - 1).unwrap_or_default();
    Some((below, mapping))
}

fn query_one(fd: i32, address: usize) -> Option<Mapping> {
    const PROCMAP_QUERY: usize = 3 << 30 | size_of::<ProcmapQuery>() << 16 | (b'f' as usize) << 8 | 17;
    let mut name = [0u8; 16];
    let mut query = ProcmapQuery {
        size: size_of::<ProcmapQuery>() as u64,
        query_address: address as u64,
        name_bytes: name.len() as u32,
        name_address: name.as_mut_ptr() as u64,
        ..ProcmapQuery::default()
    };
    // SAFETY: the argument has the request's type; the kernel writes at most `name_bytes` bytes at `name`. A
    // longer name is an error (ENAMETOOLONG): then it is not "[stack]", and the question is repeated without
    // it.
    let mut answer = unsafe { sys::ioctl(fd, PROCMAP_QUERY, &mut query) };
    const ENAMETOOLONG: isize = -36;
    if answer == ENAMETOOLONG {
        query.name_bytes = 0;
        query.name_address = 0;
        // SAFETY: as above.
        answer = unsafe { sys::ioctl(fd, PROCMAP_QUERY, &mut query) };
    }
    (answer == 0).then_some(Mapping {
        start: query.start as usize,
        end: query.end as usize,
        accessible: query.flags & 7 != 0,
        is_main_stack: name.starts_with(b"[stack]"),
    })
}

/// Parses the mappings until the one around `sp`; returns the one below it too.
fn parse(fd: i32, sp: usize) -> (Mapping, Mapping) {
    let (mut below, mut found) = (Mapping::default(), Mapping::default());
    each_mapping(fd, |mapping| {
        if (mapping.start..mapping.end).contains(&sp) {
            found = mapping;
            return true;
        }
        below = mapping;
        false
    });
    (below, found)
}

/// Visits the lines of `/proc/self/maps`, lowest address first, until `visit` returns true.
pub(crate) fn each_mapping(fd: i32, mut visit: impl FnMut(Mapping) -> bool) {
    let Some(mut scratch) = sys::Scratch::map() else { return };
    let buffer = scratch.bytes();
    let mut line = LineParser::default();
    loop {
        let read = sys::read(fd, buffer);
        if read <= 0 {
            return;
        }
        for &byte in first(&buffer[..], read as usize) {
            if line.feed(byte).is_some_and(&mut visit) {
                return;
            }
        }
    }
}

/// Parses `start-end perms offset device inode   name`, byte by byte: a line may span two reads.
#[derive(Default)]
struct LineParser {
    mapping: Mapping,
    field: usize,
    in_blank: bool,
    name_matches: usize,
}

impl LineParser {
    fn feed(&mut self, byte: u8) -> Option<Mapping> {
        const NAME: &[u8] = b"[stack]";
        const FIELD_NAME: usize = 6;
        match byte {
            b'\n' => {
                let mapping = self.mapping;
                let is_main_stack = self.name_matches == NAME.len();
                *self = LineParser::default();
                return Some(Mapping { is_main_stack, ..mapping });
            }
            b'-' if self.field == 0 => self.field = 1,
            b' ' if !self.in_blank => {
                self.in_blank = true;
                self.field += 1;
            }
            b' ' => {}
            _ => {
                self.in_blank = false;
                match self.field {
                    0 => self.mapping.start = self.mapping.start << 4 | hex_digit(byte),
                    1 => self.mapping.end = self.mapping.end << 4 | hex_digit(byte),
                    2 => self.mapping.accessible |= matches!(byte, b'r' | b'w' | b'x'),
                    FIELD_NAME => {
                        let expected = NAME.get(self.name_matches) == Some(&byte);
                        self.name_matches = if expected { self.name_matches + 1 } else { usize::MAX - 1 };
                    }
                    _ => {}
                }
            }
        }
        None
    }
}

fn hex_digit(byte: u8) -> usize {
    (byte as char).to_digit(16).unwrap_or(0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address_on_stack() -> usize {
        let local = 0u8;
        core::ptr::from_ref(&local) as usize
    }

    #[test]
    fn query_and_text_agree_on_a_thread_s_stack() {
        let check = || {
            let sp = address_on_stack();
            let fd = sys::open_read(c"/proc/self/maps") as i32;
            let (below, mapping) = parse(fd, sp);
            // SAFETY: as in `of_this_thread`.
            let recorded = |from, end| unsafe { block_start(from, end, sp) };
            let parsed = judge(sp, below, mapping, tls::control_block(), recorded);
            assert!(parsed.holds(sp));
            // With a guard both methods agree.
            assert_eq!(recorded(tls::control_block(), mapping.end), Some(parsed.start));
            assert_eq!(StackRange::of_this_thread(sp), parsed);
        };
        std::thread::spawn(check).join().unwrap();
    }

    /// As a JVM's, which makes guards of its own later: no mapping shows where such a stack ends.
    #[test]
    fn a_stack_without_a_guard_has_the_bounds_of_its_block() {
        use core::ffi::c_void;
        unsafe extern "C" {
            fn pthread_attr_init(attributes: *mut c_void) -> i32;
            fn pthread_attr_setguardsize(attributes: *mut c_void, bytes: usize) -> i32;
            fn pthread_attr_setstacksize(attributes: *mut c_void, bytes: usize) -> i32;
            fn pthread_create(
                thread: *mut usize,
                attributes: *const c_void,
                run: extern "C" fn(*mut c_void) -> *mut c_void,
                argument: *mut c_void,
            ) -> i32;
            fn pthread_join(thread: usize, result: *mut *mut c_void) -> i32;
        }
        extern "C" fn run(into: *mut c_void) -> *mut c_void {
            let range = StackRange::of_this_thread(address_on_stack());
            // SAFETY: whoever started this thread waits for it, with room for the range.
            unsafe { into.cast::<(StackRange, usize)>().write((range, address_on_stack())) };
            into
        }
        // More than the stacks of other tests' threads, which glibc would hand out again.
        const STACK_BYTES: usize = 5 << 20;
        let mut attributes = [0usize; 16];
        let mut ranges = [(StackRange::default(), 0); 2];
        let of = attributes.as_mut_ptr().cast();
        // SAFETY: the attributes have room (glibc's are of 56 bytes); the threads are waited for.
        unsafe {
            assert_eq!(pthread_attr_init(of), 0);
            assert_eq!(
                (pthread_attr_setguardsize(of, 0), pthread_attr_setstacksize(of, STACK_BYTES)),
                (0, 0)
            );
            // Two at once: they lie side by side in one mapping.
            let mut threads = [0usize; 2];
            for (thread, range) in threads.iter_mut().zip(&mut ranges) {
                assert_eq!(pthread_create(thread, of, run, (&raw mut *range).cast()), 0);
            }
            for thread in threads {
                assert_eq!(pthread_join(thread, core::ptr::null_mut()), 0);
            }
        }
        for (range, sp) in ranges {
            assert!(range.holds(sp), "{range:x?} {sp:x}");
            let bytes = range.end - range.start;
            assert!((STACK_BYTES - 16 * PAGE_BYTES..=STACK_BYTES).contains(&bytes), "{bytes:#x}");
        }
    }

    /// glibc 2.42 guards stacks by pages that a mapping does not show, so that the next thread's guard begins where this one's block ends.
    #[test]
    fn what_cannot_be_read_behind_the_block_ends_the_search() {
        const RECORD: usize = PAGE_BYTES + 0x900;
        const BLOCK_BYTES: usize = 2 * PAGE_BYTES;
        for from in [RECORD - 0x40, RECORD - 0x840, RECORD + 8] {
            let pages = sys::map_private(4 * PAGE_BYTES) as usize;
            // SAFETY: fresh memory, of which the first two pages stay.
            unsafe {
                sys::unmap((pages + BLOCK_BYTES) as *mut u8, PAGE_BYTES);
                *((pages + RECORD) as *mut [usize; 3]) = [pages, BLOCK_BYTES, 0];
            }
            // SAFETY: what stands for a control block can be read.
            let found = unsafe { block_start(pages + from, pages + 4 * PAGE_BYTES, pages + 0x100) };
            assert_eq!(found, (from < RECORD).then_some(pages), "{from:#x}");
        }
    }

    #[test]
    fn lines_are_parsed() {
        let mut parser = LineParser::default();
        let text = b"7ffc1000-7ffc3000 rw-p 00000000 00:00 0                          [stack]\n\
                     7ffc4000-7ffc5000 ---p 00000000 00:00 0 \n";
        let found: Vec<_> = text.iter().filter_map(|byte| parser.feed(*byte)).collect();
        assert_eq!((found[0].start, found[0].end), (0x7ffc_1000, 0x7ffc_3000));
        assert!(found[0].is_main_stack && found[0].accessible);
        assert!(!found[1].is_main_stack && !found[1].accessible);
    }

    #[test]
    fn a_mapping_without_a_guard_is_not_trusted() {
        let mapping = Mapping { start: 0x1000, end: 0x9000, accessible: true, is_main_stack: false };
        let rw = Mapping { start: 0, end: 0x1000, accessible: true, is_main_stack: false };
        let unrecorded = |_, _| None;
        assert_eq!(judge(0x5000, rw, mapping, 0x8000, unrecorded), StackRange::default());
        let guard = Mapping { accessible: false, ..rw };
        let whole = StackRange { start: 0x1000, end: 0x8000 };
        assert_eq!(judge(0x5000, guard, mapping, 0x8000, unrecorded), whole);
        assert_eq!(judge(0x5000, guard, mapping, 0x4000, unrecorded), StackRange::default());
        let recorded = |_, _| Some(0x3000);
        for below in [rw, guard] {
            assert_eq!(
                judge(0x5000, below, mapping, 0x8000, recorded),
                StackRange { start: 0x3000, ..whole }
            );
        }
        assert_eq!(judge(0x5000, rw, mapping, 0x4000, recorded), StackRange::default());
    }
}
