//! Which code is the function that interprets a script.

use crate::cfi;
use crate::objects::Object;

/// What a reader learns from the first stacks of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Nothing yet: the thread runs no script, or its stack does not show it.
    Unknown,
    /// The frames do not lie where they should.
    Elsewhere,
    /// They do; and the bounds of the interpreter's code, as [`parts`] returns them.
    Found([[u64; 2]; 2]),
}

/// The code of the function that interprets, and the part that compilers put elsewhere. Few know the latter's name: it is where most of the
/// jumps lead that leave the function for the middle of another.
#[inline(never)]
pub fn parts(object: &Object, address: usize, bytes: usize) -> [[u64; 2]; 2] {
    const PARTS: usize = 4;
    let (start, end) = cfi::function_around(object, address).unwrap_or((address, address + bytes));
    let mut parts = [(0usize, 0usize, 0u32); PARTS];
    let mut at = start;
    while at + 6 <= end {
        // SAFETY: within a function of a loaded object; an instruction may begin at any byte.
        let bytes = unsafe { core::ptr::read_unaligned(at as *const [u8; 6]) };
        let jump = match bytes {
            [0x0f, 0x80..=0x8f, a, b, c, d] => Some((6, [a, b, c, d])),
            [0xe9, a, b, c, d, _] => Some((5, [a, b, c, d])),
            _ => None,
        };
        if let Some((length, distance)) = jump {
            let target = (at + length).wrapping_add_signed(i32::from_le_bytes(distance) as isize);
            let is_outside = !(start..end).contains(&target) && (object.start..object.end).contains(&target);
            // Those that were found already need no search of the tables.
            let known = parts.iter_mut().find(|(start, end, _)| (*start..*end).contains(&target));
            if let Some((part, _, jumps)) = known {
                *jumps += u32::from(target != *part);
            } else if is_outside
                && let Some((part, end)) = cfi::function_around(object, target)
                && part != target
                && let Some(free) = parts.iter_mut().min_by_key(|(_, _, jumps)| *jumps)
            {
                // The rarest is evicted: there are stray bytes that look like a jump.
                *free = (part, end, 1);
            }
        }
        at += 1;
    }
    // One of them would do where the function is short: in a long one there are stray bytes that look like a jump.
    const JUMPS_MIN: u32 = 8;
    const LONG_BYTES: usize = 8 << 10;
    let jumps_min = if end - start < LONG_BYTES { 1 } else { JUMPS_MIN };
    let most = parts.iter().max_by_key(|(_, _, jumps)| *jumps).filter(|(_, _, jumps)| *jumps >= jumps_min);
    let (part, part_end, _) = most.copied().unwrap_or_default();
    [[start as u64, end as u64], [part as u64, part_end as u64]]
}
