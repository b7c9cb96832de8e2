//! Functions with known figures: 3 allocations of 10, 100 and 1000 bytes; a vector that grows from 1 to 8 bytes, a power of two at a time, after a
//! preparation that is not counted; one that allocates nothing, and one that leaves 40 bytes.

use mallow::{keep, Bencher};

#[mallow::bench]
fn three() -> [Vec<u8>; 3] {
    [10, 100, 1000].map(|size| keep(Vec::with_capacity(size)))
}

#[mallow::bench(name = "vector.grown")]
fn grown(bencher: Bencher) {
    let sizes = keep(vec![1, 2, 4, 8]);
    bencher.bench(|| {
        let mut bytes = Vec::new();
        for size in &sizes {
            bytes.reserve_exact(size - bytes.len());
            bytes.resize(*size, 0u8);
            bytes = keep(bytes);
        }
        bytes
    });
}

#[mallow::bench]
fn nothing() -> u32 {
    (0..100).map(keep).sum()
}

#[mallow::bench]
fn leaves() {
    std::mem::forget(keep(vec![0u8; 40]));
}

fn main() {
    mallow::main();
}
