//! Copy on write with Arc::make_mut: the first write through a second handle copies, the next do not.
//!
//! A value is 1 Arc + 1 Vec. 2 for the original + 1000 operations x 2 for the copy = 2002.
//!
//! expect: allocations=2002 remaining=0 descriptors=0 ops=1000
#![allow(unexpected_cfgs)]

use mallow_markers::{keep, measure, ops};
use std::sync::Arc;

const OPS: usize = 1000;

fn run() {
    let original = Arc::new(vec![0usize; 64]);
    #[cfg(seed_fd)]
    std::mem::forget(std::fs::File::open("/dev/null")); // SEED_FD
    for operation in 0..OPS {
        let mut second = Arc::clone(&original);
        Arc::make_mut(&mut second)[0] = operation + 1;
        Arc::make_mut(&mut second)[1] = operation + 2;
        let second = keep(second);
        assert!(original[0] == 0 && second[1] == operation + 2);
        #[cfg(seed_alloc)]
        drop(keep(Box::new([0u8; 24]))); // SEED_ALLOC
        #[cfg(seed_leak)]
        if operation % 100 == 0 {
            Box::leak(keep(Box::new([0u8; 40]))); // SEED_LEAK
        }
    }
}

fn main() {
    ops(OPS as u64);
    measure("cow_copy", run);
}
