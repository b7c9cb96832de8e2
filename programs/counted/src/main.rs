//! Work of every kind over the allocator of the feature, which is wrapped by one that counts ([`tally`]). It prints what was counted.

mod tally;

use std::alloc::{GlobalAlloc, Layout};
use std::collections::{BTreeMap, HashMap};
use std::hint::black_box;
use tally::{Counted, within};

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: Counted<tikv_jemallocator::Jemalloc> = Counted::new(tikv_jemallocator::Jemalloc, true);

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: Counted<mimalloc::MiMalloc> = Counted::new(mimalloc::MiMalloc, true);

/// Its crate has no `realloc` of its own.
#[cfg(feature = "rpmalloc")]
#[global_allocator]
static ALLOCATOR: Counted<rpmalloc::RpMalloc> = Counted::new(rpmalloc::RpMalloc, false);

#[cfg(feature = "snmalloc")]
#[global_allocator]
static ALLOCATOR: Counted<snmalloc_rs::SnMalloc> = Counted::new(snmalloc_rs::SnMalloc, true);

/// As little.
#[cfg(feature = "tcmalloc")]
#[global_allocator]
static ALLOCATOR: Counted<tcmalloc::TCMalloc> = Counted::new(tcmalloc::TCMalloc, false);

#[cfg(not(any(
    feature = "jemalloc",
    feature = "mimalloc",
    feature = "rpmalloc",
    feature = "snmalloc",
    feature = "tcmalloc"
)))]
#[global_allocator]
static ALLOCATOR: Counted<std::alloc::System> = Counted::new(std::alloc::System, true);

#[inline(never)]
fn at_strings(count: u32) -> usize {
    within("at_strings", || (0..count).map(|index| black_box(format!("text {index}")).len()).sum())
}

#[inline(never)]
fn at_grown(count: usize) -> Vec<u64> {
    within("at_grown", || {
        let mut list = Vec::new();
        (0..count).for_each(|index| list.push(black_box(index as u64)));
        list.shrink_to_fit();
        list
    })
}

#[inline(never)]
fn at_zeroed(count: usize) -> usize {
    within("at_zeroed", || (1..=count).map(|bytes| black_box(vec![0u8; bytes * 37]).len()).sum())
}

#[repr(align(64))]
struct Line([u8; 192]);

#[inline(never)]
#[expect(clippy::vec_box, reason = "each block is one that is counted")]
fn at_aligned(count: usize) -> Vec<Box<Line>> {
    within("at_aligned", || (0..count).map(|index| black_box(Box::new(Line([index as u8; 192])))).collect())
}

#[inline(never)]
fn at_maps(count: u32) -> usize {
    within("at_maps", || {
        let mut table: HashMap<u32, String> = HashMap::new();
        let mut tree: BTreeMap<u32, Box<[u8]>> = BTreeMap::new();
        for index in 0..count {
            table.insert(index, at_worker(index));
            tree.insert(index, vec![1; index as usize % 90 + 1].into());
        }
        table.retain(|key, _| key % 3 == 0);
        tree.retain(|key, _| key % 5 == 0);
        table.len() + tree.len()
    })
}

#[inline(never)]
fn at_worker(index: u32) -> String {
    within("at_worker", || black_box(index.to_string()))
}

#[inline(never)]
fn at_deep(depth: u32) -> Box<[u8]> {
    within("at_deep", || {
        let own: Box<[u8]> = vec![depth as u8; depth as usize + 1].into();
        if depth > 0 {
            drop(black_box(at_deep(depth - 1)));
        }
        own
    })
}

/// Sizes and alignments that nobody's collection has.
#[inline(never)]
fn at_raw(count: usize) {
    within("at_raw", || {
        for index in 0..count {
            let layout = Layout::from_size_align(index * 13 + 1, 1 << (index % 13)).expect("a layout");
            // SAFETY: the layouts are those of the blocks, and none is empty.
            unsafe {
                let block = ALLOCATOR.alloc(layout);
                let grown = ALLOCATOR.realloc(block, layout, layout.size() * 3);
                let layout = Layout::from_size_align(layout.size() * 3, layout.align()).expect("a layout");
                let zeroed = ALLOCATOR.alloc_zeroed(layout);
                assert!(*zeroed == 0);
                ALLOCATOR.dealloc(grown, layout);
                ALLOCATOR.dealloc(zeroed, layout);
            }
        }
    });
}

#[inline(never)]
fn at_kept(count: usize) {
    within("at_kept", || (0..count).for_each(|index| std::mem::forget(black_box(vec![1u8; index + 1]))));
}

/// Blocks for another thread to free.
#[inline(never)]
#[expect(clippy::vec_box, reason = "each block is one that is counted")]
fn at_handed(count: usize) -> Vec<Box<[u8; 40]>> {
    within("at_handed", || (0..count).map(|index| Box::new([index as u8; 40])).collect())
}

fn all_of_it(scale: usize) -> usize {
    let aligned = at_aligned(scale);
    let of_lines: usize = aligned.iter().map(|line| usize::from(line.0[7])).sum();
    let grown = at_grown(scale * 30);
    drop(at_deep(9));
    at_raw(scale);
    at_kept(scale / 4);
    of_lines + grown.len() + at_strings(scale as u32 * 5) + at_zeroed(scale) + at_maps(scale as u32)
}

fn main() {
    let alone = all_of_it(200);
    let threads: Vec<_> =
        (0..4).map(|thread| std::thread::spawn(move || (all_of_it(50 + thread), at_handed(100)))).collect();
    let (mut found, mut handed) = (0, 0);
    for thread in threads {
        let (of_thread, blocks) = thread.join().expect("it works");
        found += of_thread;
        handed += blocks.iter().map(|block| usize::from(block[0])).sum::<usize>();
    }
    black_box((alone, handed, found));
    tally::print();
}
