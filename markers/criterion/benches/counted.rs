//! Two functions with known figures, by both measurements: 3 allocations of 10, 100 and 1000 bytes; and a vector that grows from 1 to 8 bytes,
//! a power of two at a time.

use criterion::{criterion_main, BatchSize, Criterion};
use mallow_criterion::{counting, Allocations, Bytes};
use std::hint::black_box;

fn three() -> [Vec<u8>; 3] {
    [10, 100, 1000].map(|size| black_box(Vec::with_capacity(size)))
}

fn grown(mut bytes: Vec<u8>) -> Vec<u8> {
    for size in [1, 2, 4, 8] {
        bytes.reserve_exact(size - bytes.len());
        bytes.resize(size, 0);
        bytes = black_box(bytes);
    }
    bytes
}

fn allocations() {
    let mut criterion: Criterion<Allocations> = counting(Allocations).configure_from_args();
    criterion.bench_function("allocations/three", |bencher| bencher.iter(three));
    // Setting up is not counted.
    criterion.bench_function("allocations/grown", |bencher| {
        bencher.iter_batched(|| black_box(vec![1u8; 5000]), |_| grown(Vec::new()), BatchSize::SmallInput);
    });
    criterion.final_summary();
}

fn bytes() {
    let mut criterion: Criterion<Bytes> = counting(Bytes).configure_from_args();
    criterion.bench_function("bytes/three", |bencher| bencher.iter(three));
    criterion.final_summary();
}

criterion_main!(allocations, bytes);
