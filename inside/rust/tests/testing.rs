//! Tests of what single threads allocate, run beside each other as cargo runs them.

use mallow_alloc::{Mallow, Share, Stats, assert_allocations, region, testing};
use std::alloc::System;
use std::hint::black_box;

#[global_allocator]
static ALLOC: Mallow<System> = Mallow::new(System);

#[inline(never)]
fn rows(count: usize, bytes: usize) -> Vec<Vec<u8>> {
    (0..count).map(|_| black_box(vec![1; bytes])).collect()
}

/// Many tests at once: each is told of its own blocks, to the byte.
#[test]
fn figures_are_exact_while_other_threads_allocate() {
    let each = |number: usize| {
        move || {
            for round in 0..20 {
                let count = 10 * number + round;
                let test = testing();
                let kept = rows(count, 100);
                let stats = test.stats();
                let vectors = 24 * count as u64;
                let expected = Stats {
                    allocations: 1 + count as u64,
                    bytes: vectors + 100 * count as u64,
                    peak_bytes: vectors + 100 * count as u64,
                    peak_blocks: 1 + count as u64,
                    live_bytes: vectors + 100 * count as u64,
                    live_blocks: 1 + count as u64,
                    ..Stats::default()
                };
                assert_eq!(stats, expected);
                drop(kept);
                assert_allocations!(test, "live_blocks==0", "live_bytes==0");
            }
        }
    };
    let threads: Vec<_> = (1..=8).map(|number| std::thread::spawn(each(number))).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn work_on_other_threads_counts_when_it_is_shared_and_not_otherwise() {
    let test = testing();
    let share: Share = test.share();
    let before = test.stats();
    let kept = std::thread::scope(|scope| {
        let shared = scope.spawn(move || share.run(|| rows(50, 10)));
        let other = scope.spawn(|| rows(900, 10));
        (shared.join().unwrap(), other.join().unwrap())
    });
    let during = test.stats();
    // What starting two threads costs is this thread's; nine hundred rows would be too many for that.
    let allocations = during.allocations - before.allocations;
    assert!((51..200).contains(&allocations), "{during:?}");
    assert!(during.bytes - before.bytes >= 50 * 34, "{during:?}");
    drop(kept);
    share.run(|| drop(rows(1, 1)));
    assert_eq!(test.stats().allocations, during.allocations + 2);
    drop(test);
    assert_eq!(share.run(|| rows(3, 1)).len(), 3);
}

#[test]
fn a_block_that_moves_counts_as_each_call_does_and_a_temporary_one_as_such() {
    let test = testing();
    let mut text = String::with_capacity(10);
    text.push_str("0123456789");
    text.reserve_exact(20);
    drop(black_box(text));
    drop(black_box(Box::new([0u8; 7])));
    let stats = test.stats();
    let expected = Stats {
        allocations: 3,
        bytes: 10 + 30 + 7,
        reallocations: 1,
        // The string's first block was replaced by its second before anything else was allocated.
        temporary: stats.temporary,
        peak_bytes: 30,
        peak_blocks: 1,
        ..Stats::default()
    };
    assert_eq!(stats, expected);
    assert!((2..=3).contains(&stats.temporary), "{stats:?}");
}

#[inline(never)]
fn encode(times: usize) {
    rows(times, 64).into_iter().for_each(drop);
}

#[test]
fn a_limit_that_is_broken_is_told_with_the_stacks_that_broke_it_and_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("encode.mallow");
    let test = testing().saved_as(&trace);
    encode(40);
    let told = test.check(&["allocations<=40", "live_blocks==0", "bytes<1k"]).unwrap_err();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], "allocations: 41, and the limit is at most 40");
    assert_eq!(lines[1], format!("bytes: {}, and the limit is less than 1024", 40 * (64 + 24)));
    assert_eq!(lines[2], "  40 allocations, 2560 bytes, at");
    let place = |function: &str| lines.iter().position(|line| line.contains(function));
    let (row, caller) = (place("rows"), place("testing::encode"));
    assert!(row.is_some() && row < caller, "{told}");
    assert!(lines[caller.unwrap()].contains("inside/rust/tests/testing.rs:"), "{told}");
    assert!(told.contains(&format!("mallow report {}", trace.display())), "{told}");
    assert!(std::fs::metadata(&trace).unwrap().len() > 0);
}

#[test]
#[should_panic(expected = "allocations: 3, and the limit is exactly 2")]
fn the_macro_panics_with_what_does_not_hold() {
    let test = testing();
    let kept = rows(2, 1);
    assert_allocations!(test, "allocations==2");
    drop(kept);
}

#[test]
#[should_panic(expected = "there is no metric 'alocations'")]
fn a_limit_that_says_nothing_does_not_pass() {
    assert_allocations!(testing(), "alocations<=2");
}

#[test]
fn a_test_within_a_test_counts_its_own_and_the_outer_one_goes_on() {
    let outer = testing();
    let first = rows(1, 5);
    let inner = region().unwrap();
    let second = rows(3, 5);
    assert_allocations!(inner, "allocations==4");
    drop(inner);
    assert_allocations!(outer, "allocations==2");
    drop((first, second));
}
