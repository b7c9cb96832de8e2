//! Fills a VecDeque that has room, turns it and changes every element in place.
//!
//! 1 ring with room for 1000; turning and changing in place = 0. One operation is one element changed.
//!
//! expect: allocations=1 remaining=0 descriptors=0 ops=1000
#![allow(unexpected_cfgs)]

use mallow_markers::{keep, measure, ops};
use std::collections::VecDeque;

const OPS: usize = 1000;

fn run() {
    let mut ring: VecDeque<usize> = VecDeque::with_capacity(OPS);
    #[cfg(seed_fd)]
    std::mem::forget(std::fs::File::open("/dev/null")); // SEED_FD
    ring.extend(0..OPS);
    ring.rotate_left(300);
    for operation in 0..OPS {
        ring[operation] += 1;
        #[cfg(seed_alloc)]
        drop(keep(Box::new([0u8; 24]))); // SEED_ALLOC
        #[cfg(seed_leak)]
        if operation % 100 == 0 {
            Box::leak(keep(Box::new([0u8; 40]))); // SEED_LEAK
        }
    }
    assert!(keep(ring)[0] == 301);
}

fn main() {
    ops(OPS as u64);
    measure("ring_modify", run);
}
