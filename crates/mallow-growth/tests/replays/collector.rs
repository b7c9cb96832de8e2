//! A made-up Go program: a heap that nobody sees, whose collector runs when it has doubled. Only resident memory shows it.
//!
//! The model (Go's documents on its collector): a collection leaves what lives, and the next one comes when as much again has been
//! allocated, at the least 4 MiB. Resident memory is the highest the heap has been; what lies above the next collection is given
//! back bit by bit.

use crate::noise::{Autoregressive, Chance};
use mallow_growth::{Conclusion, Evidence, ForeignHeap, Observation, Rules, Verdict, judge};

const MIB: f64 = 1_048_576.0;

/// One kind of program, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program {
    /// What it holds from the start.
    pub(crate) base: f64,
    /// Garbage of a request.
    pub(crate) garbage: f64,
    /// What each request loses.
    pub(crate) leak: f64,
    /// What it goes on to hold while it warms up, with so many iterations as a time constant.
    pub(crate) warm_up: (f64, f64),
}

pub(crate) const CLEAN: Program =
    Program { base: 0.5 * MIB, garbage: 5_000.0, leak: 0.0, warm_up: (0.0, 1.0) };

struct Heap {
    live_at_collection: f64,
    /// Now, garbage and all.
    bytes: f64,
    resident: f64,
}

impl Heap {
    fn goal(&self) -> f64 {
        (2.0 * self.live_at_collection).max(4.0 * MIB)
    }

    /// A thousandth of an iteration's work.
    fn work(&mut self, live: f64, allocated: f64) {
        self.bytes += allocated;
        if self.bytes >= self.goal() {
            (self.live_at_collection, self.bytes) = (live, live);
        }
        let kept = 1.1 * self.goal();
        if self.resident > kept {
            self.resident -= 0.001 * (self.resident - kept);
        }
        self.resident = self.resident.max(self.bytes);
    }
}

/// Judges one run as `mallow soak` does, and says how many iterations it took.
pub(crate) fn replay(program: Program, piece: f64, seed: u64) -> (Conclusion, usize) {
    let mut chance = Chance::new(seed);
    let piece = (piece * (0.7 + 0.6 * chance.uniform())).round();
    let mut noise = Autoregressive::new(40_000.0, &mut chance);
    let mut heap = Heap { live_at_collection: program.base, bytes: program.base, resident: program.base };
    let (mut requests, mut measured) = (0.0, 0.0);
    let mut evidence = Evidence { foreign_heap: ForeignHeap::Uncollected, ..Evidence::default() };
    let mut iteration = |pieces: f64| {
        for _ in 0..1_000 {
            requests += pieces * piece / 1_000.0;
            measured += pieces / 1_000.0;
            let warm = program.warm_up.0 * (1.0 - (-measured / program.warm_up.1).exp());
            let live = program.base + warm + program.leak * requests;
            let allocated = (program.garbage + program.leak) * pieces * piece / 1_000.0
                + program.warm_up.0 / program.warm_up.1 * (-measured / program.warm_up.1).exp() * pieces
                    / 1_000.0;
            heap.work(live, allocated);
        }
        let resident = 13e6 + heap.resident + noise.next(&mut chance);
        Observation {
            requests: requests as u64,
            seconds: measured,
            live_bytes: Some(1_824),
            resident_bytes: (resident / 4_096.0).round() as u64 * 4_096,
            mapped_bytes: Some(7 << 20),
            areas_bytes: Some(40_960),
            ..Observation::default()
        }
    };
    for pieces in [1.5, 1.0, 1.0] {
        iteration(pieces);
    }
    loop {
        let wanted = if evidence.observations.is_empty() { 20 } else { 2 * evidence.observations.len() };
        while evidence.observations.len() < wanted {
            evidence.observations.push(iteration(1.0));
        }
        let conclusion = judge(&evidence, &Rules::default());
        if conclusion.verdict != Verdict::Inconclusive || wanted >= 80 {
            return (conclusion, wanted);
        }
    }
}

/// How often a program was said to pass, to grow, and to be open.
pub(crate) fn counts(program: Program, piece: f64, runs: u64) -> [u64; 3] {
    let mut counts = [0; 3];
    for seed in 0..runs {
        let (conclusion, _) = replay(program, piece, seed);
        let at = match conclusion.verdict {
            Verdict::Inconclusive => 2,
            Verdict::Mappings | Verdict::Leaking | Verdict::GrowsWhenIdle => 1,
            _ => 0,
        };
        counts[at] += 1;
    }
    counts
}

/// The programs that are replayed, and what may not be said of them.
pub(crate) fn programs() -> Vec<(&'static str, Program, f64)> {
    let clean = |garbage: f64, base: f64| Program { garbage, base: base * MIB, ..CLEAN };
    let leak = |leak: f64, garbage: f64| Program { leak, garbage, ..CLEAN };
    vec![
        ("clean", CLEAN, 1_000.0),
        ("clean, little garbage", clean(100.0, 0.5), 1_000.0),
        ("clean, much garbage", clean(50_000.0, 0.5), 1_000.0),
        ("clean, 20 MiB live", clean(5_000.0, 20.0), 1_000.0),
        ("clean, 20 MiB live, little garbage", clean(400.0, 20.0), 1_000.0),
        ("clean, 200 MiB live", clean(5_000.0, 200.0), 1_000.0),
        ("warms up by 8 MiB over 5 iterations", Program { warm_up: (8.0 * MIB, 5.0), ..CLEAN }, 1_000.0),
        ("warms up by 30 MiB over 10 iterations", Program { warm_up: (30.0 * MIB, 10.0), ..CLEAN }, 1_000.0),
        ("leaks 256", leak(256.0, 5_000.0), 1_000.0),
        ("leaks 256, little garbage", leak(256.0, 100.0), 1_000.0),
        ("leaks 256, 5,000 requests", leak(256.0, 5_000.0), 5_000.0),
        ("leaks 1,024", leak(1_024.0, 5_000.0), 1_000.0),
        ("leaks 3,000 (goroutines)", leak(3_000.0, 2_000.0), 1_000.0),
        ("leaks 1,024, 20 MiB live", Program { base: 20.0 * MIB, ..leak(1_024.0, 5_000.0) }, 1_000.0),
        // Collected too seldom to be seen: it may not pass.
        ("leaks 256, 200 MiB live", Program { base: 200.0 * MIB, ..leak(256.0, 5_000.0) }, 1_000.0),
        ("leaks 1,024, 200 MiB live", Program { base: 200.0 * MIB, ..leak(1_024.0, 1_000.0) }, 1_000.0),
    ]
}
