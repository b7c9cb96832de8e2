//! Schedules 1000 boxed timers in a BinaryHeap and runs them in the order of their deadlines.
//!
//! The heap's Vec doubles from 4 to 1024: 1 allocation + 8 reallocations, each of which counts = 9.
//! 9 + 1000 operations x 1 timer = 1009.
//!
//! expect: allocations=1009 remaining=0 descriptors=0 ops=1000
#![allow(unexpected_cfgs, unused_imports)]

use mallow_markers::{keep, measure, ops};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const OPS: usize = 1000;

#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Timer {
    deadline: usize,
}

fn run() {
    let mut heap: BinaryHeap<Reverse<Box<Timer>>> = BinaryHeap::new();
    #[cfg(seed_fd)]
    std::mem::forget(std::fs::File::open("/dev/null")); // SEED_FD
    for operation in 0..OPS {
        heap.push(Reverse(Box::new(Timer { deadline: (operation + 1) * 389 % 1009 })));
        #[cfg(seed_alloc)]
        drop(keep(Box::new([0u8; 24]))); // SEED_ALLOC
        #[cfg(seed_leak)]
        if operation % 100 == 0 {
            Box::leak(keep(Box::new([0u8; 40]))); // SEED_LEAK
        }
    }
    let mut earlier = 0;
    while let Some(Reverse(timer)) = heap.pop() {
        assert!(timer.deadline > earlier);
        earlier = timer.deadline;
    }
}

fn main() {
    ops(OPS as u64);
    measure("timer_heap", run);
}
