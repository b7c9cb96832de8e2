//! Measurements made up for tests, of this crate and of those above it.

use crate::baseline::{Baseline, Machine};
use crate::measurement::{Environment, Measurement, Metrics, Run, Site};
use mallow_base::{Frame, Language};

/// Pseudo-random numbers that are the same in each run of the tests.
pub struct Chance(pub u64);

impl Chance {
    /// The next one, from 0 on.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }
}

/// A machine with glibc.
pub fn environment() -> Environment {
    Environment {
        architecture: "x86_64".to_owned(),
        libc: "glibc 2.36".to_owned(),
        runtime: "native".to_owned(),
        allocator: "libc".to_owned(),
        processors: 2,
        counting: 1,
    }
}

/// A frame of the program that is measured.
pub fn frame(function: &str, file: &str, line: u32) -> Frame {
    Frame {
        function: function.to_owned(),
        file: Some(file.to_owned()),
        line: Some(line),
        module: Some("/srv/demo/bench".to_owned()),
        inlined: false,
        language: Language::Native,
    }
}

/// A site of `main` with one more frame.
pub fn site(function: &str, line: u32, allocations: u64, remaining: u64) -> Site {
    Site {
        frames: vec![frame(function, "/srv/demo/src/buf.c", line), frame("main", "/srv/demo/src/main.c", 9)],
        metrics: Metrics {
            allocations,
            bytes: allocations.saturating_mul(16),
            remaining_blocks: remaining,
            remaining_bytes: remaining.saturating_mul(16),
            ..Metrics::default()
        },
    }
}

/// A run whose metrics are the sum of its sites.
pub fn run(sites: Vec<Site>) -> Run {
    let metrics = sites.iter().fold(Metrics::default(), |sum, site| sum.plus(&site.metrics));
    Run { metrics, sites, settled: true, ..Run::default() }
}

/// Runs with one site each.
pub fn measurement(ops: Option<u64>, runs: &[(u64, u64)]) -> Measurement {
    let runs =
        runs.iter().map(|(allocations, remaining)| run(vec![site("grow", 88, *allocations, *remaining)]));
    of_runs(ops, runs.collect())
}

/// A measurement of the test `encode`.
pub fn of_runs(ops: Option<u64>, runs: Vec<Run>) -> Measurement {
    Measurement {
        name: "encode".to_owned(),
        region: String::new(),
        ops,
        runs,
        warmups: 1,
        environment: environment(),
        notes: Vec::new(),
        unseen: Vec::new(),
        is_marked: false,
    }
}

/// Allocations of runs that leave nothing.
pub fn counts(ops: Option<u64>, allocations: &[u64]) -> Measurement {
    let runs: Vec<(u64, u64)> = allocations.iter().map(|count| (*count, 0)).collect();
    measurement(ops, &runs)
}

/// Returns the baseline of a measurement, which has runs.
pub fn baseline(measurement: &Measurement) -> Baseline {
    Baseline::of(measurement, &Machine::default()).expect("it has runs")
}
