//! Made-up programs whose live heap is restless, with what each stack held: a just-in-time compiler's arenas, caches that fill, batches
//! that come and go, blocks that pass from one stack to another; some of them with a leak on one stack.

use crate::noise::{Autoregressive, Chance};
use mallow_growth::{Evidence, Observation, Rules, StackSeries, Stacks, Verdict, judge};

/// How often leaks were found and programs without one were called leaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) leaking: usize,
    pub(crate) passed: usize,
    pub(crate) open: usize,
}

const STACKS: usize = 40;

/// What a stack does for its whole life, drawn by chance.
enum Stack {
    Noise(Autoregressive, f64),
    /// Fills up: size, iterations.
    Cache(f64, f64),
    /// Climbs and is given back: height, iterations, phase.
    Batch(f64, f64, f64),
    /// Falls and then stands: size, until which iteration.
    Shrinks(f64, f64),
    /// A walk by chance: what each iteration adds or takes away.
    Walk(f64, f64),
    Steady(f64),
    /// The other half of a move, which it gives up as the steady one grows.
    GivesUp(f64),
}

impl Stack {
    fn drawn(chance: &mut Chance) -> Stack {
        let size = 10f64.powf(4.0 + 3.0 * chance.uniform());
        match (chance.uniform() * 5.0) as u32 {
            0 => Stack::Noise(Autoregressive::new(size, chance), size),
            // Short enough to be over, or nearly: a cache that still fills at the end is a leak to any statistic.
            1 => Stack::Cache(size, 1.0 + 9.0 * chance.uniform()),
            2 => Stack::Batch(size, 2.0 + 20.0 * chance.uniform(), chance.uniform()),
            3 => Stack::Shrinks(size, 5.0 + 35.0 * chance.uniform()),
            _ => Stack::Walk(10.0 * size, size / 10.0),
        }
    }

    fn held(&mut self, iteration: f64, piece: f64, chance: &mut Chance) -> u64 {
        let held = match self {
            Stack::Noise(noise, level) => 4.0 * *level + noise.next(chance),
            Stack::Cache(size, time) => *size * (1.0 - (-iteration / *time).exp()),
            Stack::Batch(size, period, phase) => *size * (iteration / *period + *phase).fract(),
            Stack::Shrinks(size, until) => *size * (1.0 - iteration / *until).max(0.0),
            Stack::Walk(level, step) => {
                *level += *step * chance.normal();
                *level
            }
            Stack::Steady(per_request) => *per_request * iteration * piece,
            Stack::GivesUp(per_request) => *per_request * (90.0 - iteration) * piece,
        };
        held.max(0.0) as u64
    }
}

/// Runs with a leak of so many bytes a request, or none; with `moves`, another stack gives up as much as the first gains.
pub(crate) fn counts(leak: f64, moves: bool, runs: u64) -> Counts {
    let mut counts = Counts::default();
    for seed in 0..runs {
        match replay(leak, moves, seed) {
            Verdict::Leaking => counts.leaking += 1,
            Verdict::Inconclusive => counts.open += 1,
            _ => counts.passed += 1,
        }
    }
    counts
}

fn replay(leak: f64, moves: bool, seed: u64) -> Verdict {
    let mut chance = Chance::new(seed.wrapping_mul(7_919) + 17);
    let piece = (1_000.0 * (0.7 + 0.6 * chance.uniform())).round();
    let mut stacks: Vec<Stack> = (0..STACKS).map(|_| Stack::drawn(&mut chance)).collect();
    stacks.extend((leak > 0.0).then_some(Stack::Steady(leak)));
    stacks.extend(moves.then_some(Stack::GivesUp(leak)));
    let series = |id: usize| StackSeries { id: id as u32, ..StackSeries::default() };
    let mut evidence = Evidence {
        stacks: Stacks { observations: Vec::new(), series: (0..stacks.len()).map(series).collect() },
        ..Evidence::default()
    };
    loop {
        let wanted = if evidence.observations.is_empty() { 20 } else { 2 * evidence.observations.len() };
        for at in evidence.observations.len()..wanted {
            let iteration = at as f64 + 4.5;
            let held: Vec<u64> =
                stacks.iter_mut().map(|stack| stack.held(iteration, piece, &mut chance)).collect();
            for (series, held) in evidence.stacks.series.iter_mut().zip(&held) {
                series.bytes.push(*held);
                series.blocks.push(*held / 64);
            }
            evidence.stacks.observations.push(at);
            let live: u64 = held.iter().sum();
            evidence.observations.push(Observation {
                requests: (iteration * piece) as u64,
                seconds: iteration,
                live_bytes: Some(live),
                resident_bytes: 200 << 20,
                trimmed_bytes: Some(200 << 20),
                allocator_bytes: Some(150 << 20),
                ..Observation::default()
            });
        }
        let conclusion = judge(&evidence, &Rules::default());
        if conclusion.verdict != Verdict::Inconclusive || wanted >= 80 {
            return conclusion.verdict;
        }
    }
}
