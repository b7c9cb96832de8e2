//! Blocks side by side, as close as an allocator can place them.

use super::*;

/// As far apart as glibc places blocks of these sizes.
fn places_of(first: usize, sizes: &[usize]) -> Vec<usize> {
    let mut next = first;
    let place = |size: &usize| {
        let address = next;
        next += (size + 8).next_multiple_of(16).max(32);
        address
    };
    sizes.iter().map(place).collect()
}

fn taken(heap: Heap, address: usize) -> Option<(u64, u8)> {
    // SAFETY: the block is this test's.
    unsafe { take(heap, address) }.map(|block| (block.size, block.tag))
}

#[test]
fn a_block_has_its_size_beside_others_and_leaves_nothing() {
    const FIRST: usize = 0x5000_0000_0010;
    let mut sizes = [0, 1, 24, 25, 252, 253, 254, 255, 256, 0xffff, 0xff_ffff, 1 << 24, 24, 254, 24, 0];
    for heap in [Heap::Malloc, Heap::Operators] {
        for _ in 0..sizes.len() {
            // The same addresses again for other blocks.
            sizes.rotate_left(1);
            let places = places_of(FIRST, &sizes);
            let tag = |at: usize| 240 + at as u8;
            for (at, (address, size)) in places.iter().zip(sizes).enumerate() {
                remember(heap, *address, size, tag(at));
            }
            // Every second one first: what is written beside a block would be seen in its neighbours.
            for at in (1..sizes.len()).step_by(2).chain((0..sizes.len()).step_by(2)) {
                assert_eq!(taken(heap, places[at]), Some((sizes[at] as u64, tag(at))), "{heap:?} {sizes:?}");
            }
            // Nobody counted a block that begins behind the first granule of one that was.
            for address in places.iter().flat_map(|place| (0..=64).map(move |granule| place + 8 * granule)) {
                assert_eq!(taken(heap, address), None, "{heap:?} {sizes:?}");
            }
        }
    }
}

/// The size of a live block is no block: where its lower byte is 0, it would be one of 2^64 - 1 bytes.
#[test]
fn a_word_without_a_size_is_no_block() {
    const BLOCK: usize = 0x5100_0000_0000;
    remember(Heap::Operators, BLOCK, 0x100, 1);
    assert_eq!(taken(Heap::Operators, BLOCK + 8), None);
    assert_eq!(taken(Heap::Operators, BLOCK), Some((0x100, 1)));
}

#[test]
fn what_was_never_counted_is_not_known() {
    assert_eq!(taken(Heap::Malloc, 0x6000_0000_0000), None);
    assert!(!remember_beside(Heap::Malloc, 0x6000_0000_0000, 1, 0), "nothing was counted around it");
    assert_eq!(taken(Heap::Malloc, 1 << 47), None);
    remember(Heap::Malloc, 1 << 47, 1, 0);
    assert_eq!(taken(Heap::Malloc, 1 << 47), None);
}
