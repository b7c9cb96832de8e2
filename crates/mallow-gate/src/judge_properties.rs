//! What must hold of every verdict, and simulations whose errors are counted.

use super::*;
use crate::sample::{Chance, baseline, counts, measurement};
use proptest::prelude::*;

fn outcome(now: &Measurement, before: &Measurement) -> Outcome {
    judge(now, Some(&baseline(before)), &Limits::default(), &Settings::default()).outcome
}

/// As a caller does it: with twice the runs where they are wanted.
fn outcome_of_series(mut series: impl FnMut() -> (u64, u64), ops: u64, before: &Measurement) -> Outcome {
    let mut runs: Vec<(u64, u64)> = (0..10).map(|_| series()).collect();
    if wants_more_runs(&measurement(Some(ops), &runs)) {
        runs.extend((0..10).map(|_| series()));
    }
    outcome(&measurement(Some(ops), &runs), before)
}

/// The rules once more in the plainest form, for steady runs that leave nothing.
fn naive(now: u64, before: u64, ops: u64) -> Outcome {
    let slack = if ops / 100 > 50 { 50 } else { ops / 100 };
    let difference = i128::from(now) - i128::from(before);
    if difference > i128::from(slack) {
        Outcome::Regressed
    } else if -difference > i128::from(slack) {
        Outcome::Improved
    } else {
        Outcome::Ok
    }
}

proptest! {
    #[test]
    fn steady_runs_are_judged_as_the_plainest_rules_do(
        before in 0u64..200_000, difference in -200i64..200, ops in 1u64..20_000,
    ) {
        let now = before.saturating_add_signed(difference);
        let runs = counts(Some(ops), &[now; 10]);
        prop_assert_eq!(outcome(&runs, &counts(Some(ops), &[before; 10])), naive(now, before, ops));
    }

    #[test]
    fn one_allocation_more_per_operation_is_caught_from_anywhere_in_the_window(
        before in 0u64..1_000_000, place in 0u64..=100, ops in 1u64..1_000_000,
        jitter in prop::collection::vec(0u64..=5, 7),
    ) {
        let slack = (ops / 100).min(50);
        let within = (before + place.min(2 * slack)).saturating_sub(slack);
        let mut values = vec![within; 3];
        values.extend(jitter.iter().map(|more| within + more));
        let dearer: Vec<u64> = values.iter().map(|value| value + ops).collect();
        let before = counts(Some(ops), &[before; 10]);
        prop_assert_eq!(outcome(&counts(Some(ops), &values), &before), Outcome::Ok);
        prop_assert_eq!(outcome(&counts(Some(ops), &dearer), &before), Outcome::Regressed);
    }

    #[test]
    fn no_change_is_always_ok(
        runs in prop::collection::vec((0u64..6, 0u64..3), 7), least in 0u64..1_000_000, ops in prop::option::of(0u64..5000),
    ) {
        let mut values = vec![(least, 0); 3];
        values.extend(runs.iter().map(|(more, left)| (least + more, *left)));
        let now = measurement(ops, &values);
        prop_assert_eq!(outcome(&now, &now), Outcome::Ok);
    }

    #[test]
    fn no_measurement_makes_it_panic(
        runs in prop::collection::vec((any::<u32>(), any::<u32>()), 0..25),
        before in prop::collection::vec((any::<u32>(), any::<u32>()), 1..25),
        ops in prop::option::of(any::<u64>()),
    ) {
        let of = |runs: &[(u32, u32)]| {
            let runs: Vec<(u64, u64)> = runs.iter().map(|(a, b)| (u64::from(*a), u64::from(*b))).collect();
            measurement(ops, &runs)
        };
        let verdict = outcome(&of(&runs), &of(&before));
        prop_assert_eq!(verdict == Outcome::Error, runs.is_empty());
    }
}

/// Strays in one run of five, up to five of them; now and then a run that is far off.
fn noise(chance: &mut Chance) -> u64 {
    match chance.below(500) {
        0 => 100 + chance.below(10_000),
        1..100 => 1 + chance.below(5),
        _ => 0,
    }
}

#[test]
fn noise_that_adds_raises_no_false_alarm_in_ten_thousand_series() {
    let mut chance = Chance(4);
    let mut wrong = Vec::new();
    for index in 0..10_000u64 {
        let ops = [10, 100, 1000, 10_000][(index % 4) as usize];
        let floor = ops * (1 + index % 7);
        let verdict =
            outcome_of_series(|| (floor + noise(&mut chance), 0), ops, &counts(Some(ops), &[floor; 10]));
        if verdict != Outcome::Ok {
            wrong.push((index, verdict));
        }
    }
    assert_eq!(wrong, []);
}

#[test]
fn an_allocation_per_operation_under_the_same_noise_is_always_caught() {
    let mut chance = Chance(5);
    for index in 0..10_000u64 {
        let ops = [1, 10, 100, 1000][(index % 4) as usize];
        let floor = ops * (1 + index % 7);
        let before = counts(Some(ops), &[floor; 10]);
        let verdict = outcome_of_series(|| (floor + ops + noise(&mut chance), 0), ops, &before);
        // One operation's one allocation is no more than the noise; FLAKY fails as well, OK would be wrong.
        let is_caught = verdict == Outcome::Regressed || (ops <= 10 && verdict == Outcome::Flaky);
        assert!(is_caught, "series {index} of {ops} operations: {verdict:?}");
    }
}

/// Blocks that a leak in every hundredth operation leaves in each run of one or two processes.
fn leak(ops: u64, runs: u64, phase: u64, begins_anew: bool) -> Vec<u64> {
    let process = |runs: u64, start: u64| {
        (0..runs).map(move |run| {
            let first = start + run * ops;
            (first..first + ops).filter(|operation| (operation + phase).is_multiple_of(100)).count() as u64
        })
    };
    // The warm-up's operations come first.
    if begins_anew && runs > 10 {
        process(10, ops).chain(process(runs - 10, ops)).collect()
    } else {
        process(runs, ops).collect()
    }
}

#[test]
fn a_leak_in_every_hundredth_operation_is_always_caught() {
    for ops in (1..130).chain([150, 199, 200, 250, 999, 1000, 10_000]) {
        for (phase, begins_anew) in (0..100).flat_map(|phase| [(phase, false), (phase, true)]) {
            let runs = |count| -> Vec<(u64, u64)> {
                leak(ops, count, phase, begins_anew).into_iter().map(|left| (3 * ops, left)).collect()
            };
            let (once, twice) = (runs(10), runs(20));
            let seen = if wants_more_runs(&measurement(Some(ops), &once)) { twice } else { once };
            let total: u64 = seen.iter().map(|run| run.1).sum();
            let verdict = outcome(&measurement(Some(ops), &seen), &counts(Some(ops), &[3 * ops; 10]));
            let expected = match (ops, total) {
                // It did not happen in these runs; nobody can see it.
                (1..10, 0) => Outcome::Ok,
                (1..10, _) => Outcome::Flaky,
                _ => Outcome::Regressed,
            };
            assert_eq!(verdict, expected, "{ops} operations, phase {phase}, {begins_anew}: {seen:?}");
        }
    }
}

#[test]
fn a_block_that_is_kept_once_is_no_leak() {
    for ops in [10, 34, 50, 99, 100, 1000] {
        for place in 0..20 {
            let runs: Vec<(u64, u64)> = (0..20).map(|run| (ops, u64::from(run == place))).collect();
            let verdict = outcome(&measurement(Some(ops), &runs), &counts(Some(ops), &[ops; 10]));
            assert_eq!(verdict, Outcome::Ok, "{ops} operations, run {place}");
        }
    }
}
