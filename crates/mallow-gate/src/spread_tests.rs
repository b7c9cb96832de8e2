//! The five numbers exactly, and against sorting by hand.

use super::*;
use crate::sample::{counts, of_runs, run, site};
use proptest::prelude::*;

fn spread(values: &[u64]) -> Spread {
    Spread::of(values).expect("there are values")
}

#[test]
fn the_five_numbers() {
    assert_eq!(Spread::of(&[]), None);
    assert_eq!(spread(&[7]), Spread { min: 7, mode: 7, max: 7, at_min: 1, runs: 1 });
    assert_eq!(spread(&[9, 5, 9, 5, 11]), Spread { min: 5, mode: 5, max: 11, at_min: 2, runs: 5 });
    assert_eq!(spread(&[9, 5, 9, 11]), Spread { min: 5, mode: 9, max: 11, at_min: 1, runs: 4 });
}

#[test]
fn steady_is_three_at_the_floor_and_none_far_off() {
    assert!(spread(&[100; 10]).is_steady());
    assert!(spread(&[100, 100, 100, 105, 104, 103, 102, 101, 101, 101]).is_steady());
    assert!(!spread(&[100, 100, 101, 101, 101]).is_steady(), "two at the floor");
    assert!(!spread(&[100, 100, 100, 100, 106]).is_steady(), "six apart");
    assert!(spread(&[10_000, 10_000, 10_000, 10_000, 10_010]).is_steady(), "one in a thousand apart");
    assert!(!spread(&[10_000, 10_000, 10_000, 10_000, 10_011]).is_steady());
    assert!(spread(&[1, 2, 3, 4]).is_steady(), "fewer than five runs cannot have three of five");
}

#[test]
fn one_run_in_ten_may_be_disturbed() {
    let has_only_outliers = |values: &[u64]| {
        let runs = counts(None, values).runs;
        spread(values).has_only_outliers(&runs, Metric::Allocations)
    };
    let mut values = vec![100; 20];
    (values[3], values[9]) = (900, 120);
    assert!(has_only_outliers(&values));
    values[10] = 105;
    assert!(has_only_outliers(&values), "so near is not disturbed");
    values[10] = 106;
    assert!(!has_only_outliers(&values));
    assert!(!has_only_outliers(&[1, 1, 1, 900]), "too few runs to tell");
    assert!(!has_only_outliers(&[1, 1, 2, 2, 2, 2, 2, 2, 2, 900]), "no floor");
}

#[test]
fn the_most_varying_site_comes_first() {
    let runs = vec![
        run(vec![site("a", 1, 10, 0), site("b", 2, 5, 0), site("c", 3, 7, 0)]),
        run(vec![site("a", 1, 12, 0), site("c", 3, 7, 0)]),
        run(vec![site("a", 1, 10, 0), site("b", 2, 9, 0), site("c", 3, 7, 0)]),
    ];
    let varying: Vec<(String, u64, u64)> = varying_sites(&of_runs(None, runs).runs)
        .into_iter()
        .map(|site| (site.frames[0].function.clone(), site.allocations.min, site.allocations.max))
        .collect();
    assert_eq!(varying, [("b".to_owned(), 0, 9), ("a".to_owned(), 10, 12)]);
}

#[test]
fn a_site_that_stands_there_twice_in_a_run_is_summed() {
    let runs = [run(vec![site("a", 1, 10, 0), site("a", 1, 5, 0)]), run(vec![site("a", 1, 15, 0)])];
    assert_eq!(varying_sites(&runs), []);
}

#[test]
fn only_so_many_varying_sites_are_kept() {
    let many = |more: u64| {
        let sites = (0..80).map(|line| site("f", line, 10 + more * u64::from(line + 1), 0));
        run(sites.collect())
    };
    let varying = varying_sites(&[many(0), many(1)]);
    assert_eq!(varying.len(), VARYING_MAX);
    assert_eq!(varying[0].allocations.range(), 80);
    assert_eq!(varying[VARYING_MAX - 1].allocations.range(), 31);
}

proptest! {
    #[test]
    fn it_is_the_same_as_counting_by_hand(values in prop::collection::vec(0u64..6, 1..30)) {
        let count = |value: u64| values.iter().filter(|of| **of == value).count() as u32;
        let min = (0..6).find(|value| count(*value) > 0).unwrap();
        let max = (0..6).rev().find(|value| count(*value) > 0).unwrap();
        let often = (0..6).map(count).max().unwrap();
        let mode = (0..6).find(|value| count(*value) == often).unwrap();
        let expected = Spread { min, mode, max, at_min: count(min), runs: values.len() as u32 };
        prop_assert_eq!(spread(&values), expected);
    }
}
