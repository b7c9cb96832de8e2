//! Splits the value of an HTTP header at its commas and trims the parts.
//!
//! 1000 operations x (1 Vec with room for 4 + 4 Strings) = 5000.
//!
//! expect: allocations=5000 remaining=0 descriptors=0 ops=1000
#![allow(unexpected_cfgs)]

use mallow_markers::{keep, measure, ops};

const OPS: usize = 1000;

fn split(value: &str) -> Vec<String> {
    let mut parts = Vec::with_capacity(value.matches(',').count() + 1);
    parts.extend(value.split(',').map(|part| part.trim().to_owned()));
    parts
}

fn run() {
    #[cfg(seed_fd)]
    std::mem::forget(std::fs::File::open("/dev/null")); // SEED_FD
    for operation in 0..OPS {
        let parts = keep(split(keep("no-cache,  max-age=60 ,must-revalidate, private")));
        assert!(parts.len() == 4 && parts[1] == "max-age=60" && operation < OPS);
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
    measure("header_split", run);
}
