//! How often equal commands are called different, over series of runs that were recorded on a quiet and on a busy machine.
//!
//! A comparison takes a contiguous piece of a series, so that the machine's moods stay in it, and deals its runs out to two names as
//! the runner does: in random blocks of ABBA or BAAB.

use mallow_stats::{Evaluations, Ratio, Verdict, is_precise};

const THRESHOLD: f64 = 0.01;
const COMPARISONS: usize = 1000;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound
    }
}

/// Milliseconds of one run per line.
fn series(text: &str) -> Vec<f64> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.parse().unwrap()).collect()
}

/// Pairs (A, B) of neighbours; `effect` is what B's times are multiplied with.
fn deal(runs: &[f64], effect: f64, random: &mut Random) -> Vec<(f64, f64)> {
    let mut pairs = Vec::new();
    for block in runs.chunks_exact(4) {
        let is_a_first = random.below(2) == 0;
        for (pair, turned) in block.chunks_exact(2).zip([false, true]) {
            let (a, b) = if is_a_first != turned { (pair[0], pair[1]) } else { (pair[1], pair[0]) };
            pairs.push((a, b * effect));
        }
    }
    pairs
}

/// One adaptive session over a piece of the series: its verdict after at most so many pairs.
fn session(runs: &[f64], effect: f64, pairs_max: usize, random: &mut Random) -> Verdict {
    let looks = Evaluations::adaptive(0, Some(pairs_max), 1);
    let needed = (looks.last() * 2).min(runs.len()) / 4 * 4;
    let start = random.below(runs.len() - needed + 1);
    let pairs = deal(&runs[start..start + needed], effect, random);
    let mut ended = Verdict::Unclear;
    for at in looks.at().iter().copied().filter(|at| *at <= pairs.len()) {
        let ratio = Ratio::of_pairs(&pairs[..at], looks.error());
        ended = Verdict::of(ratio.as_ref(), THRESHOLD);
        if ratio.is_some_and(|ratio| is_precise(&ratio, THRESHOLD)) {
            break;
        }
    }
    ended
}

fn count(runs: &[f64], effect: f64, pairs_max: usize, wanted: impl Fn(Verdict) -> bool) -> usize {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    (0..COMPARISONS).filter(|_| wanted(session(runs, effect, pairs_max, &mut random))).count()
}

fn is_alarm(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Faster | Verdict::Slower)
}

#[test]
fn equal_commands_are_called_different_in_one_of_a_hundred_sessions_at_most() {
    for (name, text) in
        [("quiet", include_str!("series/quiet.txt")), ("busy", include_str!("series/busy.txt"))]
    {
        let alarms = count(&series(text), 1.0, 90, is_alarm);
        assert!(alarms * 100 <= COMPARISONS, "{name}: {alarms} of {COMPARISONS}");
    }
}

#[test]
fn two_per_cent_are_found_in_forty_pairs_while_the_machine_is_quiet() {
    let runs = series(include_str!("series/quiet.txt"));
    let found = count(&runs, 1.02, 40, |verdict| verdict == Verdict::Slower);
    assert!(found * 100 >= 95 * COMPARISONS, "{found} of {COMPARISONS}");
}

#[test]
fn two_per_cent_are_never_called_faster_or_the_same_on_a_busy_machine() {
    let runs = series(include_str!("series/busy.txt"));
    let wrong = count(&runs, 1.02, 90, |verdict| matches!(verdict, Verdict::Faster | Verdict::Same));
    assert!(wrong * 100 <= COMPARISONS, "{wrong} of {COMPARISONS}");
}

/// What is measured one after the other, tested as if it were independent, is called different all the time: the reason for the blocks.
#[test]
fn one_after_the_other_equal_commands_differ() {
    let runs = series(include_str!("series/busy.txt"));
    let mut random = Random(7);
    let mut alarms = 0;
    for _ in 0..COMPARISONS {
        let start = random.below(runs.len() - 80 + 1);
        let piece = &runs[start..start + 80];
        let pairs: Vec<(f64, f64)> = piece[..40].iter().copied().zip(piece[40..].iter().copied()).collect();
        let ratio = Ratio::of_pairs(&pairs, 0.01);
        alarms += usize::from(is_alarm(Verdict::of(ratio.as_ref(), 0.0)));
    }
    assert!(alarms * 100 > 5 * COMPARISONS, "{alarms} of {COMPARISONS}");
}
