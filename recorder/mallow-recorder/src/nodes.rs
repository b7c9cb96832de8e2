//! The node table: stacks as ids, in a hash table in shared memory that maps (parent, address) to a node.
//!
//! The table uses open addressing over segments. The probe sequence of a node visits one or two neighbouring cache
//! lines of each segment, in the order of segments, and the node is inserted in the first free entry of that sequence.
//! So two threads that insert the same node reach the same entry. Entries never change once written, and the
//! collector reads them in place: a node is in the table before any record can refer to it, and is never sent.
//!
//! The place of a node follows from the hash of all addresses of its stack, not from its parent's id. So a known stack is
//! found by one look-up ([`find`]) of its innermost frame, however much of the walk is new. Only a new stack is inserted frame
//! by frame ([`intern`]), with its places prefetched.
//!
//! `find` compares the innermost frame's key, the 41 bits of the hash that the entry stores, and by the place 13 to 17 more; 11 in the first segment and in the two
//! small ones that are searched far. Two stacks with the same innermost frame therefore collide with a probability of at most 2^-52, and of 2^-55 on average: for a million
//! stacks of one allocating line, 2^39 pairs, once in 65,000 recordings. `intern` compares parents, and is exact.

use crate::bounds::first;
#[cfg(not(miri))]
use core::arch::asm;
use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
use core::sync::atomic::{AtomicUsize, Ordering};
use mallow_wire::shared::{
    LINK_PARENT_BITS, NODE_LINE_ENTRIES, NODE_PROBES, NODE_ROOT, NODE_SEGMENTS, Node, is_link_of,
    is_node_cut, node_cut, node_link, stack_hash,
};

/// A stack as the recorder knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Stack {
    /// The hash of its addresses.
    pub hash: u64,
    /// The node of its innermost frame.
    pub node: u32,
}

/// The stack without frames.
pub const EMPTY: Stack = Stack { hash: 0, node: NODE_ROOT };

/// How many segments contain nodes, in the process that had most: these are prefetched.
static SEGMENTS_USED: AtomicUsize = AtomicUsize::new(1);

/// Asks for the memory in which the node of a stack with this hash lies.
///
/// # Safety
/// `table` is the node table of the shared memory.
#[inline(always)]
pub unsafe fn prefetch(table: *const Node, hash: u64) {
    for segment in first(&SEGMENTS, SEGMENTS_USED.load(Ordering::Relaxed)) {
        // SAFETY: a prefetch is a hint and faults on no address; these lie in the table.
        unsafe {
            let line = segment.line(hash);
            _mm_prefetch::<_MM_HINT_T0>(table.add(line).cast());
            if segment.probes > NODE_LINE_ENTRIES {
                _mm_prefetch::<_MM_HINT_T0>(table.add(line ^ NODE_LINE_ENTRIES).cast());
            }
        }
    }
}

/// A segment of the table, ready for a search.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Its first entry's id.
    start: usize,
    /// The bits of an index in it that select a cache line.
    lines: usize,
    /// What is left out at the low end of a hash.
    shift: u32,
    probes: usize,
}

/// All of them. Computed beforehand, which takes a fortieth of the recorder's time less for a compiler.
static SEGMENTS: [Segment; NODE_SEGMENTS.len()] = {
    let mut segments = [Segment { start: 0, lines: 0, shift: 0, probes: 0 }; NODE_SEGMENTS.len()];
    let (mut i, mut start) = (0, 0);
    while i < segments.len() {
        segments[i] = segment(i, start);
        start += NODE_SEGMENTS[i];
        i += 1;
    }
    segments
};

/// The place in a segment is taken from the low end of the bits of a hash that no link stores, in every other segment from their high end. Otherwise
/// nodes that collide in one segment would collide in the next too.
const fn segment(i: usize, start: usize) -> Segment {
    let entries = NODE_SEGMENTS[i];
    let shift = if i.is_multiple_of(2) { 0 } else { LINK_PARENT_BITS - entries.ilog2() };
    Segment { start, lines: entries - NODE_LINE_ENTRIES, shift, probes: NODE_PROBES[i] }
}

/// The first segment, whose fields are part of the code.
const HOME: Segment = segment(0, 0);

impl Segment {
    /// Returns the id of the first entry of the cache line that a hash selects.
    #[inline(always)]
    const fn line(&self, hash: u64) -> usize {
        self.start + ((hash >> self.shift) as usize & self.lines)
    }
}

/// The node of a stack that is in the table, by its innermost frame's key and its hash.
///
/// # Safety
/// `table` is the node table of the shared memory.
#[inline(always)]
pub unsafe fn find(table: *const Node, key: u64, hash: u64) -> Option<u32> {
    let home = HOME.line(hash);
    // SAFETY: within the table's first segment.
    let node = unsafe { &*table.add(home) };
    if node.key.load(Ordering::Acquire) == key && is_link_of(node.link.load(Ordering::Relaxed), hash) {
        return Some(home as u32);
    }
    // SAFETY: by contract.
    unsafe { find_beyond(table, key, hash) }
}

#[inline(never)]
unsafe fn find_beyond(table: *const Node, key: u64, hash: u64) -> Option<u32> {
    // SAFETY: by contract.
    let found = unsafe {
        search(table, hash, |node, found| {
            if found == 0 {
                return Probe::Stop;
            }
            let is_it = found == key && is_link_of(node.link.load(Ordering::Relaxed), hash);
            if is_it { Probe::Found } else { Probe::On }
        })
    };
    found.map(|(id, _)| id)
}

/// Returns the stack of `callers` with one more frame, whose node is inserted if it is new.
///
/// If the table is full, the callers' node is returned, with a mark that frames are missing. Frames further in are
/// not looked up: they cannot be there, and a deep stack would search for each of its frames in vain.
///
/// # Safety
/// `table` is the node table of the shared memory.
#[inline(always)]
pub unsafe fn intern(table: *const Node, callers: Stack, key: u64) -> Stack {
    if is_node_cut(callers.node) {
        return callers;
    }
    let hash = stack_hash(key, callers.hash);
    // SAFETY: by contract.
    Stack { hash, node: unsafe { intern_at(table, callers.node, key, hash) } }
}

/// As [`intern`], with the hash that decides the node's place. It follows from the key and the callers.
///
/// # Safety
/// As [`intern`].
#[inline(always)]
pub unsafe fn intern_at(table: *const Node, callers: u32, key: u64, hash: u64) -> u32 {
    if is_node_cut(callers) {
        return callers;
    }
    let link = node_link(callers, hash);
    let home = HOME.line(hash);
    // SAFETY: within the table's first segment.
    if holds(unsafe { &*table.add(home) }, key, link) {
        return home as u32;
    }
    // SAFETY: by contract.
    unsafe { find_or_insert(table, key, link, hash) }.unwrap_or(node_cut(callers))
}

/// Finds or inserts a node; none when its place is full.
#[inline(never)]
unsafe fn find_or_insert(table: *const Node, key: u64, link: u64, hash: u64) -> Option<u32> {
    // SAFETY: by contract.
    let (id, segment) = unsafe {
        search(table, hash, |node, found| {
            let is_it = found == key && node.link.load(Ordering::Relaxed) == link;
            // A failed claim means that another thread, or a signal handler, took the entry: read it again.
            if is_it || found == 0 && (claim(node, key, link) || holds(node, key, link)) {
                Probe::Found
            } else {
                Probe::On
            }
        })
    }?;
    if SEGMENTS_USED.load(Ordering::Relaxed) <= segment {
        SEGMENTS_USED.fetch_max(segment + 1, Ordering::Relaxed);
    }
    Some(id)
}

/// The result of reading an entry.
enum Probe {
    On,
    Found,
    Stop,
}

/// Visits the entries in which the node of a stack with this hash may be, each with the key that was read in it,
/// until it is found; returns its id and its segment.
#[inline(always)]
unsafe fn search(
    table: *const Node,
    hash: u64,
    mut look: impl FnMut(&Node, u64) -> Probe,
) -> Option<(u32, usize)> {
    for (i, segment) in SEGMENTS.iter().enumerate() {
        let first = segment.line(hash);
        for probe in 0..segment.probes {
            // The chosen line, then the other one of its pair, then other pairs around it.
            let id = first ^ probe;
            // SAFETY: segments begin and end at multiples of as many entries as are looked at, so the entry lies in the
            // segment, and in the table.
            let node = unsafe { &*table.add(id) };
            // Read only once: if one read saw the entry free and another saw it taken, it would be skipped, and the
            // same node inserted twice.
            match look(node, node.key.load(Ordering::Acquire)) {
                Probe::On => {}
                Probe::Found => return Some((id as u32, i)),
                Probe::Stop => return None,
            }
        }
    }
    None
}

/// Returns whether an entry is that of a node. `key` is read first: both words appear at once, so a key that is there
/// has its link with it.
#[inline(always)]
fn holds(node: &Node, key: u64, link: u64) -> bool {
    node.key.load(Ordering::Acquire) == key && node.link.load(Ordering::Relaxed) == link
}

/// Writes both words of a free entry at once; false when it is no longer free.
///
/// The instruction takes its low half from rbx, which belongs to the compiler and cannot be named as an operand, so it is
/// swapped in and out. Every operand has a register by name: the compiler would be free to choose rbx for one that is
/// only said to be in a register. (The intrinsic becomes a call to a library that the host need not have.)
#[cfg(not(miri))]
fn claim(node: &Node, key: u64, link: u64) -> bool {
    let claimed: u8;
    // SAFETY: the entry is 16 bytes, aligned to 16, in memory that is mapped and shared, and made of atomics; `lock
    // cmpxchg16b` is what atomics of 16 bytes are made of, and every x86-64 processor since 2006 has it.
    unsafe {
        asm!(
            "xchg rsi, rbx",
            "lock cmpxchg16b xmmword ptr [rdi]",
            "sete r8b",
            "mov rbx, rsi",
            in("rdi") core::ptr::from_ref(node),
            inout("rsi") key => _,
            out("r8b") claimed,
            inout("rax") 0u64 => _,
            inout("rdx") 0u64 => _,
            in("rcx") link,
            options(nostack)
        );
    }
    claimed != 0
}

/// Miri has no assembly. Both words appear at once for who reads `key` first.
#[cfg(miri)]
fn claim(node: &Node, key: u64, link: u64) -> bool {
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _turn = TURN.lock();
    let is_free = node.key.load(Ordering::Relaxed) == 0;
    if is_free {
        node.link.store(link, Ordering::Relaxed);
        node.key.store(key, Ordering::Release);
    }
    is_free
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use mallow_wire::shared::{NODE_COUNT, node_key, node_uncut};
    use std::collections::HashMap;

    /// Fewer rounds for an interpreter.
    const SHARE: u64 = if cfg!(miri) { 1_000 } else { 1 };

    pub(crate) fn table() -> *const Node {
        if cfg!(miri) {
            let layout = std::alloc::Layout::array::<Node>(NODE_COUNT).unwrap();
            // SAFETY: the table has bytes. Nobody frees it.
            return unsafe { std::alloc::alloc_zeroed(layout).cast() };
        }
        crate::sys::map_private(NODE_COUNT * size_of::<Node>()).cast()
    }

    #[test]
    fn equal_pairs_share_an_id_and_different_ones_do_not() {
        let table = table();
        let mut seen = HashMap::new();
        let mut parent = EMPTY;
        for i in 0..300_000 / SHARE {
            let key = node_key(0x40_0000 + (i * 7919) % 100_000 * 5, false, 0);
            // SAFETY: a zeroed mapping of the table's size.
            let id = unsafe { intern(table, parent, key) };
            let known = *seen.entry((parent.node, key)).or_insert(id);
            assert_eq!(known, id);
            assert!(!is_node_cut(id.node), "full");
            parent = if i % 11 == 0 { EMPTY } else { id };
        }
        let ids: std::collections::HashSet<_> = seen.values().map(|stack| stack.node).collect();
        assert_eq!(ids.len(), seen.len(), "two pairs share an id");
    }

    /// The twin of [`find`] is a map from whole stacks.
    #[test]
    fn a_stack_is_found_by_its_hash_once_it_is_in_the_table() {
        let table = table();
        let mut known = HashMap::new();
        let mut state = 1u64;
        for _ in 0..100_000 / SHARE {
            let (mut stack, mut keys) = (EMPTY, Vec::new());
            for _ in 0..1 + (state >> 40) % 6 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                keys.push(node_key(0x1000 + (state >> 33) % 17, false, 0));
            }
            let hash = keys.iter().fold(EMPTY.hash, |callers, key| stack_hash(*key, callers));
            let innermost = keys[keys.len() - 1];
            // SAFETY: as above.
            assert_eq!(unsafe { find(table, innermost, hash) }, known.get(&keys).copied(), "{keys:?}");
            for end in 1..=keys.len() {
                // SAFETY: as above.
                stack = unsafe { intern(table, stack, keys[end - 1]) };
                known.insert(keys[..end].to_vec(), stack.node);
            }
            assert_eq!(stack.hash, hash);
        }
        assert!(known.len() as u64 > 50_000 / SHARE, "{} stacks", known.len());
    }

    /// What the collisions of `find` are reckoned from.
    #[test]
    fn a_place_tells_as_many_bits_of_a_hash_as_is_said() {
        let bits = NODE_SEGMENTS.iter().zip(NODE_PROBES).map(|(entries, probes)| (entries / probes).ilog2());
        let stored = u64::BITS - LINK_PARENT_BITS;
        assert_eq!((stored, bits.collect::<Vec<_>>()), (41, vec![11, 13, 15, 15, 11, 15, 11, 17, 16]));
    }

    #[test]
    fn generations_do_not_crowd_one_place() {
        let table = table();
        for generation in 0..5_000 / SHARE {
            for address in [0x7f00_1234_5678, 0x7f00_1234_6000] {
                // SAFETY: as above.
                let id = unsafe { intern(table, EMPTY, node_key(address, false, generation)) };
                assert!(!is_node_cut(id.node));
            }
        }
    }

    #[test]
    fn a_stack_without_a_place_keeps_its_outer_frames_and_is_marked() {
        let table = table();
        let intern = |callers, address| {
            // SAFETY: as above.
            unsafe { intern(table, callers, node_key(address, false, 0)) }
        };
        let outer = intern(EMPTY, 0x1000);
        // All entries that the search for one more frame visits are taken by others.
        let hash = stack_hash(node_key(0x2000, false, 0), outer.hash);
        for segment in &SEGMENTS {
            for probe in 0..segment.probes {
                // SAFETY: as in `search`.
                let node = unsafe { &*table.add(segment.line(hash) ^ probe) };
                node.key.store(1, Ordering::Relaxed);
            }
        }
        let cut = intern(outer, 0x2000);
        assert_eq!((is_node_cut(cut.node), node_uncut(cut.node)), (true, outer.node));
        assert_eq!(intern(cut, 0x3000), cut, "frames further in are not looked for");
        assert!(!is_node_cut(intern(outer, 0x3000).node), "others have their place");
    }

    /// Deep stacks of few functions: keys differ little, and only the hash of the callers distinguishes them.
    #[test]
    fn two_million_nodes_of_deep_stacks_have_places() {
        let table = table();
        let mut state = 88_172_645_463_325_252u64;
        let keys = [node_key(0x40_1196, false, 0), node_key(0x40_11d6, false, 0)];
        let mut cut = 0;
        for _ in 0..100 {
            let mut stack = EMPTY;
            for _ in 0..20_000 / SHARE {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // SAFETY: as above.
                let next = unsafe { intern(table, stack, keys[(state >> 63) as usize]) };
                if is_node_cut(next.node) {
                    cut += 1;
                } else {
                    stack = next;
                }
            }
        }
        assert_eq!(cut, 0, "nodes without a place");
    }

    /// Nodes alone are 16 bytes each. What small programs, a Python program and a compiler have.
    #[test]
    #[cfg_attr(miri, ignore = "600,000 nodes")]
    fn few_nodes_take_few_pages_and_many_leave_the_large_segments_alone() {
        const PAGE_ENTRIES: u32 = 4096 / size_of::<Node>() as u32;
        let table = table();
        let mut pages = std::collections::HashSet::new();
        let mut stack = EMPTY;
        let mut bytes = Vec::new();
        for i in 0..600_000 {
            let callers = if i % 50 == 0 { EMPTY } else { stack };
            // SAFETY: as above.
            stack = unsafe { intern(table, callers, node_key(0x40_0000 + i * 3, false, 0)) };
            pages.insert(stack.node / PAGE_ENTRIES);
            if [300, 3_000, 20_000, 50_000, 150_000, 560_000].contains(&(i + 1)) {
                bytes.push(pages.len() * 4096);
            }
        }
        let allowed = [131_073, 260_000, 1_200_000, 3_800_000, 5_600_000, 10_700_000];
        assert!(bytes.iter().zip(allowed).all(|(bytes, allowed)| *bytes < allowed), "{bytes:?}");
    }

    #[test]
    fn threads_agree_on_ids() {
        let table = table() as usize;
        let run = move || {
            (0..50_000 / SHARE)
                // SAFETY: as above.
                .map(|i| unsafe {
                    intern(
                        table as *const Node,
                        Stack { hash: i % 97, node: (i % 97) as u32 },
                        node_key(i, false, 0),
                    )
                })
                .collect::<Vec<_>>()
        };
        let other = std::thread::spawn(run);
        assert_eq!(run(), other.join().unwrap());
    }
}
