//! Verdicts on the trends of made-up sites: one of each kind exactly, then many of each kind with chance in them, whose errors
//! are counted.

use mallow_profile::analysis::{Pass, Plan, Trend, Verdict};
use mallow_profile::{BlockId, StackId, ThreadIndex};

/// How long each run takes, in microseconds.
const RUN_US: u64 = 1_000_000;

/// Numbers that look random and are the same in each run of the tests.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound.max(1)
    }

    /// Moments of a run, in order.
    fn moments(&mut self, count: u64, from_us: u64, to_us: u64) -> Vec<u64> {
        let mut moments: Vec<u64> = (0..count).map(|_| from_us + self.below(to_us - from_us)).collect();
        moments.sort_unstable();
        moments
    }

    /// Sizes that differ by a factor of up to four.
    fn size(&mut self) -> u64 {
        64 + self.below(192)
    }
}

/// One site of one thread.
struct Site {
    pass: Pass,
    live: Vec<BlockId>,
}

impl Site {
    fn new() -> Site {
        let trends = Some(Trend::slices(0, RUN_US));
        Site { pass: Pass::new(Plan { trends, ..Plan::default() }), live: Vec::new() }
    }

    fn alloc(&mut self, size: u64, time_us: u64) {
        self.live.push(self.pass.alloc(ThreadIndex(0), StackId(0), size, time_us));
    }

    fn free(&mut self, at: usize, time_us: u64) {
        let block = self.live.remove(at);
        self.pass.free(ThreadIndex(0), block, time_us);
    }

    fn free_all(&mut self, time_us: u64) {
        while !self.live.is_empty() {
            self.free(self.live.len() - 1, time_us);
        }
    }

    fn trend(self) -> Trend {
        let findings = self.pass.finish();
        let mut trend = Trend::new(Trend::slices(0, RUN_US));
        trend.add(&findings.trends[0]);
        trend
    }

    fn verdict(self) -> Verdict {
        self.trend().verdict()
    }
}

/// A loop that forgets a block each time.
fn growing(chance: &mut Chance, blocks: u64, from_us: u64) -> Site {
    let mut site = Site::new();
    for time_us in chance.moments(blocks, from_us, RUN_US) {
        let size = chance.size();
        site.alloc(size, time_us);
    }
    site
}

/// A loop that keeps one block in `keeps` and frees the others soon.
fn growing_in_traffic(chance: &mut Chance, blocks: u64, keeps: u64, working: usize) -> Site {
    let mut site = Site::new();
    let mut kept = 0;
    for time_us in chance.moments(blocks, 0, RUN_US) {
        let size = chance.size();
        site.alloc(size, time_us);
        if chance.below(keeps) == 0 {
            let last = site.live.len() - 1;
            site.live.swap(kept, last);
            kept += 1;
        } else if site.live.len() > kept + working {
            let at = kept + chance.below((site.live.len() - kept) as u64) as usize;
            site.free(at, time_us);
        }
    }
    site
}

/// A cache that takes keys until it has all of them.
fn filling(chance: &mut Chance, keys: u64, requests: u64) -> Site {
    let (mut site, mut known) = (Site::new(), vec![false; keys as usize]);
    for time_us in chance.moments(requests, 0, RUN_US) {
        let key = chance.below(keys) as usize;
        if !std::mem::replace(&mut known[key], true) {
            let size = chance.size();
            site.alloc(size, time_us);
        }
    }
    site
}

/// A cache that is full after some time, and then throws out a block for each new one.
fn evicting(chance: &mut Chance, room: usize, blocks: u64, oldest_first: bool) -> Site {
    let mut site = Site::new();
    for time_us in chance.moments(blocks, 0, RUN_US) {
        if site.live.len() >= room {
            let at = if oldest_first { 0 } else { chance.below(room as u64) as usize };
            site.free(at, time_us);
        }
        let size = chance.size();
        site.alloc(size, time_us);
    }
    site
}

/// A buffer that is filled and emptied again and again.
fn sawtooth(chance: &mut Chance, blocks: u64, teeth: u64) -> Site {
    let mut site = Site::new();
    let phase_us = chance.below(RUN_US / teeth);
    let mut tooth = 0;
    for time_us in chance.moments(blocks, 0, RUN_US) {
        let now = (time_us + phase_us) * teeth / RUN_US;
        if now != tooth {
            tooth = now;
            site.free_all(time_us);
        }
        let size = chance.size();
        site.alloc(size, time_us);
    }
    site
}

/// A pool of as many blocks as there are jobs at once, by chance up and down, never above its bound.
fn wandering(chance: &mut Chance, bound: usize, steps: u64) -> Site {
    let mut site = Site::new();
    for time_us in chance.moments(steps, 0, RUN_US) {
        if site.live.is_empty() || site.live.len() < bound && chance.below(2) == 0 {
            let size = chance.size();
            site.alloc(size, time_us);
        } else {
            let at = chance.below(site.live.len() as u64) as usize;
            site.free(at, time_us);
        }
    }
    site
}

#[test]
fn a_loop_that_forgets_is_growing() {
    let mut site = Site::new();
    (0..100).for_each(|i| site.alloc(100, i * 10_000));
    assert_eq!(site.verdict(), Verdict::Growing);
}

#[test]
fn a_leak_that_begins_late_is_growing() {
    assert_eq!(growing(&mut Chance(1), 500, RUN_US / 2).verdict(), Verdict::Growing);
}

#[test]
fn a_slow_leak_on_a_large_base_is_growing() {
    let mut site = Site::new();
    (0..1_000).for_each(|i| site.alloc(100, i));
    (1..100).for_each(|i| site.alloc(100, i * 10_000));
    assert_eq!(site.verdict(), Verdict::Growing);
}

#[test]
fn a_vector_that_grows_by_steps_of_equal_size_is_growing() {
    let trends = Some(Trend::slices(0, RUN_US));
    let mut pass = Pass::new(Plan { trends, ..Plan::default() });
    let mut block = pass.alloc(ThreadIndex(0), StackId(0), 10, 0);
    for i in 1..100 {
        block = pass.realloc(ThreadIndex(0), block, StackId(0), 10 + i * 10, i * 10_000);
    }
    let mut trend = Trend::new(Trend::slices(0, RUN_US));
    trend.add(&pass.finish().trends[0]);
    assert_eq!(trend.verdict(), Verdict::Growing);
}

#[test]
fn a_cache_that_fills_has_levelled_off() {
    let mut site = Site::new();
    (0..100).for_each(|i| site.alloc(100, i * 3_000));
    assert_eq!(site.verdict(), Verdict::LevelledOff);
}

#[test]
fn a_cache_with_eviction_has_levelled_off() {
    assert_eq!(evicting(&mut Chance(1), 100, 5_000, true).verdict(), Verdict::LevelledOff);
    assert_eq!(evicting(&mut Chance(1), 100, 5_000, false).verdict(), Verdict::LevelledOff);
}

#[test]
fn a_sawtooth_has_levelled_off() {
    for teeth in [3, 10, 77] {
        assert_eq!(sawtooth(&mut Chance(teeth), 2_000, teeth).verdict(), Verdict::LevelledOff, "{teeth}");
    }
}

#[test]
fn what_is_made_at_start_is_said_to_be() {
    let mut site = Site::new();
    (0..50).for_each(|i| site.alloc(100, i * 100));
    assert_eq!(site.verdict(), Verdict::AtStart);
    let mut one = Site::new();
    one.alloc(72_704, 3);
    assert_eq!(one.verdict(), Verdict::AtStart);
}

#[test]
fn a_burst_at_the_end_is_not_called_growth() {
    let mut site = Site::new();
    (0..1_000).for_each(|i| site.alloc(100, 950_000 + i * 20));
    assert_eq!(site.verdict(), Verdict::AtEnd);
    let mut after_some = Site::new();
    (0..20).for_each(|i| after_some.alloc(100, i * 40_000));
    (0..1_000).for_each(|i| after_some.alloc(100, 920_000 + i * 20));
    assert_eq!(after_some.verdict(), Verdict::AtEnd);
}

#[test]
fn what_is_freed_at_exit_is_told_and_whether_it_grew() {
    let mut grew = growing(&mut Chance(1), 200, 0);
    grew.free_all(RUN_US - 1);
    let grew = grew.trend();
    assert_eq!((grew.verdict(), grew.grew_until_freed_at_end()), (Verdict::FreedAtEnd, true));

    let mut held = Site::new();
    (0..50).for_each(|i| held.alloc(100, i * 1_000));
    held.free_all(RUN_US - 1);
    let held = held.trend();
    assert_eq!((held.verdict(), held.grew_until_freed_at_end()), (Verdict::FreedAtEnd, false));

    // Most of it is forgotten even at exit: that is a leak like any other.
    let mut half = growing(&mut Chance(2), 200, 0);
    (0..20).for_each(|_| half.free(0, RUN_US - 1));
    assert_eq!(half.verdict(), Verdict::Growing);
}

#[test]
fn a_few_blocks_tell_nothing() {
    let mut site = Site::new();
    for time_us in [100_000, 300_000, 500_000, 700_000, 900_000] {
        site.alloc(100, time_us);
    }
    assert_eq!(site.verdict(), Verdict::TooFew);
}

#[test]
fn a_step_in_the_middle_has_levelled_off_and_steps_at_odd_times_are_no_trend() {
    let mut step = Site::new();
    (0..20).for_each(|i| step.alloc(100, 1_000 * i));
    (0..20).for_each(|i| step.alloc(100, 600_000 + i));
    assert_eq!(step.verdict(), Verdict::LevelledOff);
    let mut late = Site::new();
    (0..20).for_each(|i| late.alloc(100, 1_000 * i));
    (0..20).for_each(|i| late.alloc(100, 850_000 + i));
    assert_eq!(late.verdict(), Verdict::Irregular);
}

#[test]
fn blocks_of_no_bytes_are_judged_too() {
    let mut site = Site::new();
    (0..100).for_each(|i| site.alloc(0, i * 10_000));
    assert_eq!(site.verdict(), Verdict::Growing);
}

/// How many of 1,000 sites of a kind get each verdict.
fn stats(name: &str, make: impl Fn(&mut Chance) -> Site) -> Vec<(Verdict, u32)> {
    let mut counts: Vec<(Verdict, u32)> = Verdict::ALL.iter().map(|&verdict| (verdict, 0)).collect();
    for seed in 0..1_000u64 {
        let mut chance = Chance(seed * 7_919 + 1);
        (0..5).for_each(|_| {
            chance.below(2);
        });
        let verdict = make(&mut chance).verdict();
        counts.iter_mut().filter(|(known, _)| *known == verdict).for_each(|(_, count)| *count += 1);
    }
    counts.retain(|(_, count)| *count > 0);
    println!("{name}: {counts:?}");
    counts
}

fn of(counts: &[(Verdict, u32)], verdict: Verdict) -> u32 {
    counts.iter().find(|(known, _)| *known == verdict).map_or(0, |(_, count)| *count)
}

/// The rates that the guide states, in sites of 1,000.
#[test]
fn leaks_are_seldom_missed_and_hardly_ever_called_levelled_off() {
    type Make = fn(&mut Chance) -> Site;
    let kinds: [(&str, Make, u32, u32); 7] = [
        ("20 blocks", |c| growing(c, 20, 0), 533, 61),
        ("40 blocks", |c| growing(c, 40, 0), 788, 9),
        ("100 blocks", |c| growing(c, 100, 0), 980, 0),
        ("100 blocks from the middle on", |c| growing(c, 100, RUN_US / 2), 1_000, 0),
        ("1,000 blocks", |c| growing(c, 1_000, 0), 1_000, 0),
        ("50 kept of 5,000, 50 at work", |c| growing_in_traffic(c, 5_000, 100, 50), 720, 4),
        ("500 kept of 5,000, 50 at work", |c| growing_in_traffic(c, 5_000, 10, 50), 1_000, 0),
    ];
    let kinds = kinds.map(|(name, make, growing, levelled)| (name, stats(name, make), growing, levelled));
    for (name, counts, growing, levelled) in kinds {
        assert!(of(&counts, Verdict::Growing) >= growing, "{name}: {counts:?}");
        assert!(of(&counts, Verdict::LevelledOff) <= levelled, "{name}: {counts:?}");
    }
}

#[test]
fn what_is_bounded_is_hardly_ever_called_growing() {
    type Make = fn(&mut Chance) -> Site;
    let kinds: [(&str, Make, u32); 8] = [
        ("a cache of 200 keys, 10 requests for each", |c| filling(c, 200, 2_000), 1),
        ("a cache of 200 keys, 5 requests for each", |c| filling(c, 200, 1_000), 88),
        ("oldest out of 100", |c| evicting(c, 100, 2_000, true), 0),
        ("any out of 100", |c| evicting(c, 100, 2_000, false), 5),
        ("3 teeth", |c| sawtooth(c, 1_000, 3), 9),
        ("10 teeth", |c| sawtooth(c, 1_000, 10), 0),
        ("77 teeth", |c| sawtooth(c, 5_000, 77), 0),
        ("up and down below 100", |c| wandering(c, 100, 20_000), 4),
    ];
    for (name, counts, growing) in kinds.map(|(name, make, growing)| (name, stats(name, make), growing)) {
        assert!(of(&counts, Verdict::Growing) <= growing, "{name}: {counts:?}");
    }
}
