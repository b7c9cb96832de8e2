//! How much processor time the fold takes for each event: a storm of pairs, and random frees among a million live blocks.

use mallow_profile::{Aggregator, BlockId, StackId, ThreadIndex};

const EVENTS: u64 = 40_000_000;

fn main() {
    println!("1 M random places of 16 bytes, read and written: {:.1} ns each", memory());
    let stacks = [1, 100, 20_000];
    for stack_count in stacks {
        println!("storm of pairs, {stack_count} stacks: {:.1} ns/event", storm(stack_count));
        println!("1 M random live blocks, {stack_count} stacks: {:.1} ns/event", random(stack_count, false));
        println!("  ... each hinted 16 events ahead: {:.1} ns/event", random(stack_count, true));
    }
}

fn storm(stack_count: u64) -> f64 {
    let mut fold = Aggregator::new();
    let started = cpu_ns();
    for i in 0..EVENTS / 2 {
        let block = fold.alloc(ThreadIndex(0), StackId((i % stack_count) as u32), i & 255, i);
        fold.free(ThreadIndex(0), block, i);
    }
    let passed = cpu_ns() - started;
    assert_eq!(fold.finish(0).totals.temporary, EVENTS / 2);
    passed as f64 / EVENTS as f64
}

fn random(stack_count: u64, hint: bool) -> f64 {
    const LIVE: usize = 1_000_000;
    const AHEAD: usize = 8;
    let mut seed = 1u64;
    let mut next = move || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        seed >> 33
    };
    let stacks: Vec<u32> = (0..4096).map(|_| (next() % stack_count) as u32).collect();
    let choices: Vec<usize> = (0..EVENTS as usize / 2).map(|_| next() as usize % LIVE).collect();
    let mut fold = Aggregator::new();
    let mut blocks: Vec<BlockId> =
        (0..LIVE).map(|i| fold.alloc(ThreadIndex(0), StackId(stacks[i % 4096]), 32, 0)).collect();
    let started = cpu_ns();
    for (i, &choice) in choices.iter().enumerate() {
        if hint && let Some(&later) = choices.get(i + AHEAD) {
            fold.prefetch(blocks[later]);
        }
        fold.free(ThreadIndex(0), blocks[choice], i as u64);
        blocks[choice] = fold.alloc(ThreadIndex(0), StackId(stacks[i % 4096]), 32, i as u64);
    }
    let passed = cpu_ns() - started;
    assert_eq!(fold.live_blocks(), LIVE as u64);
    passed as f64 / EVENTS as f64
}

/// What the machine needs for the misses alone: half an event is a free, which touches a random place.
fn memory() -> f64 {
    let mut places = vec![[0u64; 2]; 1_000_000];
    let mut seed = 1u64;
    let choices: Vec<u32> = (0..EVENTS / 2)
        .map(|_| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as u32 % 1_000_000
        })
        .collect();
    let started = cpu_ns();
    let mut before = 0;
    for &choice in &choices {
        // Each step waits for the one before, as a chain of misses does.
        let place = &mut places[choice as usize ^ before];
        place[0] += 1;
        before = (place[1] & 1) as usize;
    }
    let passed = cpu_ns() - started;
    assert_eq!(places.iter().map(|place| place[0]).sum::<u64>(), EVENTS / 2);
    passed as f64 / (EVENTS / 2) as f64
}

/// Time on a processor so far: other programs on the machine do not count.
fn cpu_ns() -> u64 {
    let schedstat = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    schedstat.split(' ').next().unwrap().parse().unwrap()
}
