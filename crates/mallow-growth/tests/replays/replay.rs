//! One made-up run: a mode, noise, and the looks at it.

use crate::modes::{Held, Mode, Moment, ratcheted};
use crate::noise::{Autoregressive, Chance};
use mallow_growth::{Conclusion, Evidence, Need, Observation, Rules, Verdict, judge};

/// Where a run takes place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Place {
    /// Requests of one iteration, on average over the runs.
    pub(crate) piece: f64,
    /// Standard deviation of live heap at rest, in bytes.
    pub(crate) heap_noise: f64,
    /// Of resident memory.
    pub(crate) resident_noise: f64,
}

/// Every combination that is replayed.
pub(crate) fn places() -> Vec<Place> {
    let mut places = Vec::new();
    for piece in [1_000.0, 5_000.0, 50_000.0] {
        for heap_noise in [0.0, 8_192.0, 65_536.0] {
            for resident_noise in [204_800.0, 1_048_576.0] {
                places.push(Place { piece, heap_noise, resident_noise });
            }
        }
    }
    places
}

/// What comes of the whole procedure: 20 iterations, 40 or 80 if they do not decide.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    /// The last conclusion.
    pub(crate) conclusion: Conclusion,
    /// How many iterations it took.
    pub(crate) iterations: usize,
}

impl Outcome {
    /// The verdict.
    pub(crate) fn verdict(&self) -> Verdict {
        self.conclusion.verdict
    }
}

/// Judges one run of a mode as `mallow soak` does. Without a recorder there is resident memory and nothing else.
pub(crate) fn replay(mode: &Mode, place: Place, seed: u64, recorder: bool) -> Outcome {
    let mut run = Run::begin(mode, place, seed, recorder);
    let mut evidence = Evidence::default();
    loop {
        let wanted = if evidence.observations.is_empty() { 20 } else { 2 * evidence.observations.len() };
        while evidence.observations.len() < wanted {
            let seen = run.iteration();
            evidence.observations.push(seen);
        }
        evidence.idle = run.clone().rest();
        let conclusion = judge(&evidence, &Rules::default());
        let is_open = conclusion.verdict == Verdict::Inconclusive
            && conclusion.needs.iter().any(|need| matches!(need, Need::Iterations(_)));
        if !is_open || wanted >= 80 {
            return Outcome { conclusion, iterations: wanted };
        }
    }
}

#[derive(Clone)]
struct Run<'a> {
    mode: &'a Mode,
    recorder: bool,
    chance: Chance,
    moment: Moment,
    heap: Autoregressive,
    resident: Autoregressive,
    ratchet: f64,
}

impl<'a> Run<'a> {
    /// After a burst at one and a half times the load, and two iterations of warm-up.
    fn begin(mode: &'a Mode, place: Place, seed: u64, recorder: bool) -> Run<'a> {
        let mut chance = Chance::new(seed);
        let piece = (place.piece * (0.7 + 0.6 * chance.uniform())).round();
        let moment = Moment { requests: 0.0, piece, seconds: 1.0, phase: chance.uniform() };
        let heap = Autoregressive::new(place.heap_noise, &mut chance);
        let resident = Autoregressive::new(place.resident_noise, &mut chance);
        let mut run = Run { mode, recorder, chance, moment, heap, resident, ratchet: 0.0 };
        run.work(1.5);
        run.work(1.0);
        run.work(1.0);
        run
    }

    fn work(&mut self, pieces: f64) {
        self.moment.requests += (pieces * self.moment.piece).round();
        self.moment.seconds += pieces;
        let (scale, piece) = (self.mode.ratchet, pieces * self.moment.piece);
        if scale > 0.0 {
            self.ratchet = ratcheted(self.ratchet, scale, piece, &mut self.chance);
        }
    }

    fn iteration(&mut self) -> Observation {
        self.work(1.0);
        self.moment.seconds += 0.5;
        self.look()
    }

    fn look(&mut self) -> Observation {
        let Held { live, mapped, kept, stuck, descriptors, threads } = (self.mode.held)(self.moment);
        let live = live + self.ratchet;
        let heap = (2e6 + live + self.heap.next(&mut self.chance)).max(0.0);
        let unused = 5e5 + kept + stuck;
        let noise = self.resident.next(&mut self.chance);
        // Every block costs the allocator something, and resident memory comes in pages.
        let resident =
            ((1e7 + 1.05 * live + mapped + kept + stuck + noise) / 4096.0).round().max(0.0) * 4096.0;
        let metric = |bytes: f64| self.recorder.then_some(bytes as u64);
        Observation {
            requests: self.moment.requests as u64,
            seconds: self.moment.seconds,
            live_bytes: metric(heap),
            live_blocks: metric(heap / 64.0),
            resident_bytes: resident as u64,
            trimmed_bytes: metric(resident - kept),
            mapped_bytes: metric(5e6),
            allocator_bytes: metric(heap + unused),
            held_free_bytes: metric(unused),
            areas_bytes: None,
            managed_bytes: None,
            descriptors: Some(12 + descriptors as u64),
            threads: Some(3 + threads as u64),
            requests_per_second: Some(self.moment.piece * (1.0 + 0.05 * self.chance.normal())),
        }
    }

    /// What is seen in five seconds without requests. A heap that nobody works on does not move.
    fn rest(mut self) -> Vec<Observation> {
        self.heap.stand_still();
        self.resident.stand_still();
        let look = |_| {
            self.moment.seconds += 0.5;
            self.look()
        };
        (0..10).map(look).collect()
    }
}
