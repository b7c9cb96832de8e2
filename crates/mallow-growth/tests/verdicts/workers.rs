//! Workers that are replaced, judged by their age.

use super::{MIB, judged, run, verdict};
use mallow_growth::{Basis, Evidence, Observation, Shape, Verdict};

/// A run whose workers are replaced after 400 requests: all together hold a saw, one by its age what `held` tells.
fn replaced(iterations: u64, held: impl Fn(u64) -> u64, staying: impl Fn(u64) -> u64) -> Evidence {
    let age = |at: u64| (at * 370) % 400;
    let live = |requests: u64, bytes: u64| Observation {
        requests,
        live_bytes: Some(bytes),
        ..Observation::default()
    };
    let mut workers: Vec<Observation> = (1..=iterations).map(|i| live(age(i), MIB + held(age(i)))).collect();
    workers.sort_by_key(|seen| seen.requests);
    let staying = (1..=iterations).map(|i| live(3_500 + 1_000 * i, 9_000 + staying(1_000 * i))).collect();
    let all = run(iterations, |i, seen| seen.live_bytes = Some(2 * MIB + held(age(i))));
    Evidence { workers, staying, ..all }
}

#[test]
fn workers_that_are_replaced_are_judged_by_their_age() {
    let leak = judged(&replaced(40, |age| 600 * age, |_| 0));
    let heap = leak.heap.expect("a recorder");
    assert_eq!((leak.verdict, leak.basis, leak.by_age), (Verdict::Leaking, Basis::LiveHeap, true));
    assert_eq!((heap.shape, heap.per_request), (Shape::Grows, 600.0));
    let filled = judged(&replaced(40, |age| 600 * age.min(100), |_| 0));
    assert_eq!(filled.detectable_outside_per_request, None, "mappings of a worker go with it, too");
    assert_eq!(
        (filled.verdict, filled.by_age),
        (Verdict::Clean, true),
        "a worker's caches are full after 100 requests"
    );
    let few = judged(&replaced(12, |age| 600 * age, |_| 0));
    assert_eq!(few.verdict, Verdict::Inconclusive, "with so few looks nothing is called growth");
}

/// Noise between -1 and 1, the same for the same number.
fn noise(number: u64) -> f64 {
    let mixed = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((mixed ^ (mixed >> 27)) >> 40) as f64 / f64::from(1 << 23) - 1.0
}

/// Workers whose managed heaps differ by up to so many bytes, whatever they do, and keep so many of each request.
fn managed_workers(iterations: u64, noise_bytes: f64, leak: u64, run: u64) -> Evidence {
    let mut evidence = replaced(iterations, |_| 0, |_| 0);
    for (at, seen) in evidence.workers.iter_mut().enumerate() {
        let filled = 1_000 * seen.requests.min(100);
        let differs = noise_bytes * noise(1_000 * run + at as u64);
        seen.managed_bytes =
            Some((3 * MIB + filled + leak * seen.requests).saturating_add_signed(differs as i64));
    }
    // The sum over workers is a saw.
    for (at, seen) in evidence.observations.iter_mut().enumerate() {
        seen.managed_bytes = Some(6 * MIB + 100_000 * (at as u64 * 3 % 5));
    }
    evidence
}

#[test]
fn noise_of_managed_heaps_leaves_workers_clean_as_far_as_it_can_be_seen() {
    let clean = judged(&managed_workers(60, 2_500.0, 0, 1));
    let managed = clean.managed.expect("a runtime");
    assert!(managed.per_request_low < -4.0 && managed.per_request_high > 4.0, "{managed:?}");
    assert!(matches!(clean.verdict, Verdict::Clean | Verdict::Plateau), "{clean:?}");
    let seen = clean.detectable_per_request.expect("workers");
    assert!((4.0..=40.0).contains(&seen), "{seen}");
    // With so much noise a leak that matters would be hidden.
    let loud = judged(&managed_workers(60, 50_000.0, 0, 1));
    assert_eq!(loud.verdict, Verdict::Inconclusive, "{loud:?}");
    // With few workers nothing is known yet.
    assert_eq!(verdict(&managed_workers(39, 2_500.0, 0, 1)), Verdict::Inconclusive);
}

#[test]
fn a_leak_above_what_a_pass_says_is_never_passed_in_workers() {
    let is_pass = |verdict| matches!(verdict, Verdict::Clean | Verdict::Plateau);
    let (mut passes, mut false_alarms) = (0, 0);
    for run in 0..200 {
        for noise_bytes in [500.0, 2_500.0] {
            let clean = judged(&managed_workers(60, noise_bytes, 0, run));
            false_alarms += u32::from(clean.verdict == Verdict::Leaking);
            if is_pass(clean.verdict) {
                passes += 1;
                let seen = clean.detectable_per_request.expect("workers");
                let leak = judged(&managed_workers(60, noise_bytes, seen.ceil() as u64, run));
                assert!(!is_pass(leak.verdict), "{run} {noise_bytes} {seen}: {leak:?}");
            }
        }
    }
    assert!(passes >= 380 && false_alarms == 0, "{passes} of 400 passed, {false_alarms} were called leaking");
}

#[test]
fn a_managed_leak_of_the_process_that_stays_is_found_too() {
    let mut evidence = managed_workers(60, 500.0, 0, 1);
    for seen in &mut evidence.staying {
        seen.managed_bytes = Some(MIB + 16 * seen.requests);
    }
    let leak = judged(&evidence);
    assert_eq!((leak.verdict, leak.basis), (Verdict::Leaking, Basis::ManagedHeap), "{leak:?}");
}

#[test]
fn a_leak_of_the_process_that_stays_is_found_beside_workers_that_do_not() {
    let leak = judged(&replaced(40, |_| 0, |requests| 16 * requests));
    assert_eq!((leak.verdict, leak.by_age), (Verdict::Leaking, false));
    assert_eq!(leak.heap.map(|heap| heap.per_request), Some(16.0));
}
