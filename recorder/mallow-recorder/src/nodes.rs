//! Stacks as ids: a hash table in shared memory that maps (parent, address) to a node.
//!
//! The table is open addressing over segments of growing size. The search for a node visits a fixed number of
//! entries in each segment, smallest segment first, and the first free entry on that path is where it
//! belongs, so that two threads that insert the same node meet at the same entry. Entries never change once
//! written, and the collector reads them in place: a node is known to it as soon as any record can name it,
//! and is never sent.

use core::arch::asm;
use core::sync::atomic::Ordering;
use mallow_wire::shared::{NODE_PROBES, NODE_SEGMENTS, Node, node_hash};

/// The id of the node under `parent` with `key`, inserted when it is new.
///
/// When the table is full the parent itself is given back, so that the stack ends there, and `lost` is
/// called.
///
/// # Safety
/// `table` is the node table of the shared memory.
#[inline(always)]
pub unsafe fn intern(table: *const Node, parent: u32, key: u64, lost: impl FnOnce()) -> u32 {
    // The root is the largest id, so that adding 1 to its 32 bits gives the 0 that stands for it.
    let parent_word = parent.wrapping_add(1) as u64;
    let hash = node_hash(key, parent_word) as usize;
    let first = hash & (NODE_SEGMENTS[0] - 1);
    // SAFETY: within the table's first segment.
    if holds(unsafe { &*table.add(first) }, key, parent_word) {
        return first as u32;
    }
    // SAFETY: by contract.
    unsafe { intern_slowly(table, parent, parent_word, key, hash, lost) }
}

/// As [`intern`], from the beginning of the search.
#[inline(never)]
unsafe fn intern_slowly(
    table: *const Node,
    parent: u32,
    parent_word: u64,
    key: u64,
    hash: usize,
    lost: impl FnOnce(),
) -> u32 {
    let mut segment_start = 0;
    for segment in NODE_SEGMENTS {
        let mut slot = hash & (segment - 1);
        for _ in 0..NODE_PROBES {
            let id = segment_start + slot;
            // SAFETY: `slot` is below the segment's length, so the entry lies in the table.
            let node = unsafe { &*table.add(id) };
            // `key` first: both words appear at once, so a key that is there has its parent with it.
            let found = node.key.load(Ordering::Acquire);
            if found == key && node.parent.load(Ordering::Relaxed) == parent_word {
                return id as u32;
            }
            // A failed claim means that another thread, or a signal handler, took the entry: look at it
            // again.
            if found == 0 && (claim(node, key, parent_word) || holds(node, key, parent_word)) {
                return id as u32;
            }
            slot = (slot + 1) & (segment - 1);
        }
        segment_start += segment;
    }
    lost();
    parent
}

#[inline(always)]
fn holds(node: &Node, key: u64, parent_word: u64) -> bool {
    node.key.load(Ordering::Acquire) == key && node.parent.load(Ordering::Relaxed) == parent_word
}

/// Writes both words of a free entry at once; false when it is no longer free.
fn claim(node: &Node, key: u64, parent_word: u64) -> bool {
    let claimed: u8;
    // SAFETY: the entry is 16 bytes, aligned to 16, in memory that is mapped and shared; `lock cmpxchg16b` is
    // what atomics are made of. rbx belongs to the compiler, so it is swapped in and out around the
    // instruction.
    unsafe {
        asm!(
            "xchg {low}, rbx",
            "lock cmpxchg16b xmmword ptr [{node}]",
            "sete {claimed}",
            "mov rbx, {low}",
            low = inout(reg) key => _,
            node = in(reg) core::ptr::from_ref(node),
            claimed = out(reg_byte) claimed,
            inout("rax") 0u64 => _,
            inout("rdx") 0u64 => _,
            in("rcx") parent_word,
            options(nostack)
        );
    }
    claimed != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_wire::shared::{NODE_COUNT, NODE_ROOT, node_key};
    use std::collections::HashMap;

    fn table() -> *const Node {
        crate::sys::map_private(NODE_COUNT * size_of::<Node>()).cast()
    }

    #[test]
    fn equal_pairs_share_an_id_and_different_ones_do_not() {
        let table = table();
        let mut seen = HashMap::new();
        let mut parent = NODE_ROOT;
        for i in 0..300_000u64 {
            let key = node_key(0x40_0000 + (i * 7919) % 100_000 * 5, false, 0);
            // SAFETY: a zeroed mapping of the table's size.
            let id = unsafe { intern(table, parent, key, || panic!("full")) };
            let known = *seen.entry((parent, key)).or_insert(id);
            assert_eq!(known, id);
            parent = if i % 11 == 0 { NODE_ROOT } else { id };
        }
        let ids: std::collections::HashSet<_> = seen.values().collect();
        assert_eq!(ids.len(), seen.len(), "two pairs share an id");
    }

    #[test]
    fn generations_do_not_crowd_one_place() {
        let table = table();
        for generation in 0..5_000 {
            for address in [0x7f00_1234_5678, 0x7f00_1234_6000] {
                // SAFETY: as above.
                let id = unsafe {
                    intern(table, NODE_ROOT, node_key(address, false, generation), || panic!("full"))
                };
                assert_ne!(id, NODE_ROOT);
            }
        }
    }

    #[test]
    fn threads_agree_on_ids() {
        let table = table() as usize;
        let run = move || {
            (0..50_000u64)
                // SAFETY: as above.
                .map(|i| unsafe {
                    intern(table as *const Node, (i % 97) as u32, node_key(i, false, 0), || ())
                })
                .collect::<Vec<_>>()
        };
        let other = std::thread::spawn(run);
        assert_eq!(run(), other.join().unwrap());
    }
}
