//! The node table of the shared memory: stacks, each as its innermost frame and the node of its callers.

use crate::script::EXACT;
use core::sync::atomic::AtomicU64;

/// Entries in each segment of the node table. A stack node's id is its index over all segments.
///
/// A process begins with few nodes, and a look-up among them should touch few pages, each of which costs it, and mallow, 2 µs and more: the first segments are
/// small. With the one of 2^16 entries as the first and that of 2^18 as the next, a Python program with 35,000 nodes touched 1,220 pages of this memory where it
/// touches 528 now, a build of 60 small files took 5 % longer, and compilers of a million nodes as long. A still smaller one before these brought nothing.
/// With one of 2^19 entries in the place of the first of 2^18, 50,000 nodes took 8.8 MB of memory, where they took 5.2, and the recorder of a Python program with
/// 150,000 nodes 2 % more time. With one of 2^17 entries that program takes 5 % less, but a compiler of 560,000 nodes 3 % more, which searches one full segment
/// more for each.
/// A segment after two large ones is smaller on purpose: it stores the few nodes whose places in them are full, close together. In a larger one each of
/// them would touch a page of its own.
pub const NODE_SEGMENTS: [usize; 9] =
    [1 << 13, 1 << 16, 1 << 18, 1 << 18, 1 << 16, 1 << 18, 1 << 16, 1 << 20, 1 << 22];

/// Entries in all segments.
pub const NODE_COUNT: usize =
    (1 << 13) + (1 << 16) + (1 << 18) + (1 << 18) + (1 << 16) + (1 << 18) + (1 << 16) + (1 << 20) + (1 << 22);

/// The id for "no stack": the parent of outermost frames. No entry has it. Ids have 28 bits.
pub const NODE_ROOT: u32 = (1 << 28) - 1;

/// Set in the id of a stack whose inner frames found no place in the table: the rest of the id is the node of those that did.
const NODE_CUT: u32 = 1 << 27;
/// A stack of which not even the outermost frame found a place.
const NODE_CUT_ROOT: u32 = NODE_ROOT - 1;

const _: () = assert!(NODE_COUNT < (NODE_CUT_ROOT & !NODE_CUT) as usize);

/// Returns the id of a stack that continues inwards from `node` with frames for which there was no room.
#[inline(always)]
pub const fn node_cut(node: u32) -> u32 {
    if node == NODE_ROOT { NODE_CUT_ROOT } else { node | NODE_CUT }
}

/// Returns whether frames are missing at the inner end.
#[inline(always)]
pub const fn is_node_cut(node: u32) -> bool {
    node & NODE_CUT != 0 && node != NODE_ROOT
}

/// The node of the frames that have a place: [`NODE_ROOT`] or one that is not in the table when none has.
#[inline(always)]
pub const fn node_uncut(node: u32) -> u32 {
    if is_node_cut(node) { node & !NODE_CUT } else { node }
}

/// A stack node: 16 bytes, written once, both words by one 128-bit compare and exchange.
///
/// `key` is 0 while the entry is free. Otherwise it contains, from the low bits: the address (48 bits), one bit that
/// says whether the address is exact (a program counter) rather than a return address, and the module generation (15
/// bits) in which the address was seen. `link` contains the parent and the upper bits of the stack's hash:
/// [`node_link`].
#[repr(C, align(16))]
#[derive(Debug)]
pub struct Node {
    /// Address, exactness, generation.
    pub key: AtomicU64,
    /// Parent and hash.
    pub link: AtomicU64,
}

/// The low bits of a link hold the parent's id plus 1, or 0 for the root.
pub const LINK_PARENT_BITS: u32 = 23;
const LINK_PARENT: u64 = (1 << LINK_PARENT_BITS) - 1;

const _: () = assert!(NODE_COUNT < LINK_PARENT as usize);

/// Packs a node's link: its parent's id, [`NODE_ROOT`] for none, and the upper 41 bits of the [`stack_hash`] of its
/// stack.
///
/// The root has all bits set, so that adding 1 to the low ones yields 0 for it.
#[inline(always)]
pub const fn node_link(parent: u32, hash: u64) -> u64 {
    hash & !LINK_PARENT | (parent as u64 + 1) & LINK_PARENT
}

/// The parent in a node's link.
#[inline(always)]
pub const fn node_parent(link: u64) -> u32 {
    ((link & LINK_PARENT) as u32).wrapping_sub(1) & NODE_ROOT
}

/// Returns whether a link may be one of a stack with this hash.
#[inline(always)]
pub const fn is_link_of(link: u64, hash: u64) -> bool {
    (link ^ hash) >> LINK_PARENT_BITS == 0
}

const _: () = assert!(size_of::<Node>() == 16);

/// Set in a node's key when the address is the program counter itself and not a return address: the frame was
/// interrupted by a signal, so nothing is subtracted before the look-up.
pub const NODE_EXACT: u64 = EXACT;

/// The number of module generations before they wrap.
pub const GENERATION_COUNT: u64 = 1 << 15;

/// The address that marks a stack deeper than the recorder follows: its only child chain is the part that was
/// kept.
pub const ADDRESS_TRUNCATED: u64 = 1;

/// Packs a node's key.
#[inline(always)]
pub const fn node_key(address: u64, exact: bool, generation: u64) -> u64 {
    (address & (NODE_EXACT - 1)) | (exact as u64) << 48 | (generation % GENERATION_COUNT) << 49
}

/// The address in a node's key.
pub const fn node_address(key: u64) -> u64 {
    key & (NODE_EXACT - 1)
}

/// Returns whether the address is a program counter.
#[inline(always)]
pub const fn is_node_exact(key: u64) -> bool {
    key & NODE_EXACT != 0
}

/// The module generation in a node's key.
pub const fn node_generation(key: u64) -> u64 {
    key >> 49
}

/// Entries of the node table in a cache line.
pub const NODE_LINE_ENTRIES: usize = 4;
/// How many entries a search visits in each segment before the next one: the cache line that the hash selects, and in every
/// segment but the first its neighbour too, so that a segment fills well before nodes overflow into the next. An overflowing
/// node touches a page of its own there, so the small segment before a large one is searched further. If the last one is full,
/// a deep stack loses its inner frames.
pub const NODE_PROBES: [usize; 9] = [4, 8, 8, 8, 32, 8, 32, 8, 64];

// A search flips the low bits of a place, which stays in its segment when that begins and ends at a multiple of the probes.
const _: () = {
    let (mut segment, mut start) = (0, 0);
    while segment < NODE_SEGMENTS.len() {
        let probes = NODE_PROBES[segment];
        let (at, entries): (usize, usize) = (start, NODE_SEGMENTS[segment]);
        assert!(probes.is_power_of_two() && at.is_multiple_of(probes) && entries.is_multiple_of(probes));
        start += NODE_SEGMENTS[segment];
        segment += 1;
    }
};

/// The hash of a stack: of its innermost frame's key, and of the hash of its callers (0 for none). It says
/// where the search for its node begins in each segment.
///
/// Both halves of a 128-bit product, folded: every bit of the key, the generation at its top included,
/// reaches the low bits that choose the place. A program that unloads libraries a hundred times has a hundred
/// keys that differ in nothing else.
#[inline(always)]
pub const fn stack_hash(key: u64, callers: u64) -> u64 {
    const KEY_SALT: u64 = 0x9e37_79b9_7f4a_7c15;
    const CALLERS_SALT: u64 = 0xd1b5_4a32_d192_ed03;
    let product = (key ^ KEY_SALT) as u128 * (callers ^ CALLERS_SALT) as u128;
    (product >> 64) as u64 ^ product as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_keys_round_trip() {
        let key = node_key(0x7fff_1234_5678, true, 5);
        assert_eq!(node_address(key), 0x7fff_1234_5678);
        assert_eq!(node_generation(key), 5);
        assert_ne!(key & NODE_EXACT, 0);
        assert_eq!(node_generation(node_key(1, false, GENERATION_COUNT + 3)), 3);
    }

    #[test]
    fn links_round_trip_their_parent_and_hash() {
        for parent in [0, 5, NODE_COUNT as u32 - 1, NODE_ROOT] {
            for hash in [0, 1 << 23, u64::MAX, 0x9e37_79b9_7f4a_7c15] {
                let link = node_link(parent, hash);
                assert_eq!(node_parent(link), parent);
                assert!(
                    is_link_of(link, hash)
                        && !is_link_of(link, hash ^ 1 << 23)
                        && !is_link_of(link, hash ^ 1 << 63)
                );
            }
        }
    }
}
