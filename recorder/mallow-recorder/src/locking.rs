//! A program that locks all of its memory (`mlockall`): programs with deadlines do, and databases.
//!
//! The kernel makes pages of all that is mapped then, and of the recorder's memory that would be 2.1 GiB, in seconds. So what is the program's is locked piece by piece.

use crate::process;
use crate::stack_range::each_mapping;
use crate::sys;

const CURRENT: i32 = 1;
const FUTURE: i32 = 2;
const ON_FAULT: i32 = 4;

/// Does what `mlockall` would do without us. False when it is not done: then the call is passed on.
pub fn lock_all(flags: i32) -> bool {
    if flags & !(CURRENT | FUTURE | ON_FAULT) != 0 {
        return false;
    }
    if flags & FUTURE != 0 {
        sys::note_future_locked();
    }
    // Without the first flag nothing that is there is locked.
    let is_done = if flags & CURRENT == 0 { sys::lock_all(flags) == 0 } else { lock_current(flags) };
    if is_done {
        process::note_locked();
    }
    is_done
}

fn lock_current(flags: i32) -> bool {
    // A filter of system calls may not allow the others, nor to open a file. What the program touches is locked then, when it does.
    let maps = if process::is_filtered() { -1 } else { sys::open_read(c"/proc/self/maps") };
    let is_marked = sys::lock_all(flags | ON_FAULT) == 0;
    if maps < 0 {
        return is_marked;
    }
    // So that it takes nothing of the limit.
    sys::unlock_lasting();
    let later = flags & (FUTURE | ON_FAULT);
    let later_is_locked = || flags & FUTURE == 0 || sys::lock_all(later) == 0;
    // By the limit our address space may be too much, where the program's is not.
    let is_done = is_marked || has_room() && later_is_locked();
    let on_fault = flags & ON_FAULT != 0;
    if is_done && !(is_marked && on_fault) {
        each_mapping(maps as i32, |mapping| {
            if !sys::is_lasting(mapping.start, mapping.end) {
                // Of what nobody can use there are no pages. The kernel locks it all the same, and says that it has none.
                sys::lock(mapping.start, mapping.end.wrapping_sub(mapping.start), on_fault);
            }
            false
        });
        // From now on pages are made at once, and not when they are touched.
        later_is_locked();
    }
    sys::close(maps as i32);
    is_done
}

/// Returns whether the limit on locked memory has room for all of the program's.
fn has_room() -> bool {
    let maps = sys::open_read(c"/proc/self/maps");
    if maps < 0 {
        return false;
    }
    let mut bytes = 0usize;
    each_mapping(maps as i32, |mapping| {
        if !sys::is_lasting(mapping.start, mapping.end) {
            bytes = bytes.saturating_add(mapping.end.wrapping_sub(mapping.start));
        }
        false
    });
    sys::close(maps as i32);
    bytes <= sys::lock_limit_bytes()
}
