//! The matrix, cell by cell, on runs without noise; and that no evidence makes the judge panic.

use mallow_growth::{
    Basis, Conclusion, Evidence, Fault, Finding, ForeignHeap, Need, Observation, Rules, Shape, StackSeries,
    Stacks, Verdict, growing_stacks, judge,
};
use proptest::prelude::*;

#[path = "verdicts/workers.rs"]
mod workers;

const MIB: u64 = 1 << 20;

/// A run of iterations with 1,000 requests each after three and a half of warm-up: still, unless `fill` moves something.
fn run(iterations: u64, fill: impl Fn(u64, &mut Observation)) -> Evidence {
    let observation = |i: u64| {
        let mut seen = Observation {
            requests: 3_500 + 1_000 * i,
            seconds: i as f64,
            live_bytes: Some(MIB),
            resident_bytes: 12 * MIB,
            trimmed_bytes: Some(11 * MIB),
            mapped_bytes: Some(5 * MIB),
            allocator_bytes: Some(2 * MIB),
            held_free_bytes: Some(MIB),
            ..Observation::default()
        };
        fill(i, &mut seen);
        seen
    };
    Evidence { observations: (1..=iterations).map(observation).collect(), ..Evidence::default() }
}

fn judged(evidence: &Evidence) -> Conclusion {
    judge(evidence, &Rules::default())
}

fn verdict(evidence: &Evidence) -> Verdict {
    judged(evidence).verdict
}

#[test]
fn a_flat_program_is_clean_with_the_limit_as_detection_limit() {
    let conclusion = judged(&run(20, |_, _| ()));
    assert_eq!(conclusion.verdict, Verdict::Clean);
    assert_eq!(conclusion.detectable_per_request, Some(4.0));
    assert_eq!(conclusion.detectable_outside_per_request, Some(64.0));
    assert_eq!(conclusion.window, 7..20);
    assert_eq!((conclusion.needs, conclusion.findings, conclusion.plateau), (vec![], vec![], None));
}

#[test]
fn a_growing_heap_leaks_by_its_slope() {
    let conclusion = judged(&run(20, |i, seen| seen.live_bytes = Some(MIB + 16_000 * i)));
    assert_eq!(conclusion.verdict, Verdict::Leaking);
    let heap = conclusion.heap.expect("a recorder");
    assert_eq!((heap.shape, heap.per_request, heap.noise), (Shape::Grows, 16.0, 0.0));
    assert_eq!((heap.first, heap.last), (1_064_576.0, 1_368_576.0));
}

#[test]
fn growth_below_the_limit_is_clean() {
    assert_eq!(verdict(&run(20, |i, seen| seen.live_bytes = Some(MIB + 3_000 * i))), Verdict::Clean);
}

#[test]
fn a_heap_that_rose_is_a_plateau() {
    let conclusion = judged(&run(20, |i, seen| seen.live_bytes = Some(MIB + MIB * i.min(5))));
    assert_eq!(conclusion.verdict, Verdict::Plateau);
    let plateau = conclusion.plateau.expect("it rose");
    // From the first observation, which has one of the five, to all of them.
    assert_eq!((plateau.rise_bytes, plateau.after_requests), (4.0 * MIB as f64, 8_500));
}

#[test]
fn a_step_after_half_of_the_requests_stays_open() {
    let step = |i: u64, seen: &mut Observation| seen.live_bytes = Some(MIB + 4 * MIB * u64::from(i > 12));
    let conclusion = judged(&run(20, step));
    assert_eq!((conclusion.verdict, conclusion.needs), (Verdict::Inconclusive, vec![Need::Iterations(20)]));
    assert_eq!(verdict(&run(40, step)), Verdict::Plateau);
}

#[test]
fn resident_growth_beside_a_flat_heap_has_four_causes() {
    let growing = |i: u64| 12 * MIB + MIB * i;
    let retained = run(20, |i, seen| seen.resident_bytes = growing(i));
    assert_eq!(verdict(&retained), Verdict::Retention);
    let fragmented = run(20, |i, seen| {
        seen.resident_bytes = growing(i);
        seen.trimmed_bytes = Some(growing(i));
        seen.allocator_bytes = Some(growing(i));
    });
    assert_eq!(verdict(&fragmented), Verdict::Fragmentation);
    let mapped = run(20, |i, seen| {
        seen.resident_bytes = growing(i);
        seen.trimmed_bytes = Some(growing(i));
    });
    assert_eq!(verdict(&mapped), Verdict::Mappings);
    let files = run(20, |i, seen| {
        seen.resident_bytes = growing(i);
        seen.trimmed_bytes = Some(growing(i));
        seen.allocator_bytes = None;
        seen.mapped_bytes = Some(growing(i));
    });
    assert_eq!(verdict(&files), Verdict::Mappings);
    let mut unforced = mapped;
    unforced.uncollected = true;
    assert_eq!(judged(&unforced).needs, [Need::Collection]);
}

#[test]
fn what_the_allocator_keeps_all_the_time_has_a_verdict_too() {
    let kept = |i: u64| run(20, move |_, seen| seen.resident_bytes = (12 + i) * MIB);
    assert_eq!(verdict(&kept(2)), Verdict::Clean);
    assert_eq!(verdict(&kept(30)), Verdict::Retention);
    let mut stuck = run(20, |_, seen| {
        seen.resident_bytes = 50 * MIB;
        seen.trimmed_bytes = Some(50 * MIB);
        seen.held_free_bytes = Some(40 * MIB);
    });
    assert_eq!(verdict(&stuck), Verdict::Fragmentation);
    // All of it lies elsewhere, say in the stacks of threads, and what the allocator has free has no pages.
    let mut elsewhere = stuck.clone();
    elsewhere.observations.iter_mut().for_each(|seen| seen.areas_bytes = Some(3 * MIB));
    assert_eq!(verdict(&elsewhere), Verdict::Clean);
    elsewhere.observations.iter_mut().for_each(|seen| seen.areas_bytes = Some(45 * MIB));
    assert_eq!(verdict(&elsewhere), Verdict::Fragmentation);
    // It was like that before any work.
    stuck.before = Some(Observation { resident_bytes: 49 * MIB, ..Observation::default() });
    assert_eq!(verdict(&stuck), Verdict::Clean);
}

#[test]
fn resident_memory_alone_never_leaks() {
    let alone = |i: u64, seen: &mut Observation| {
        *seen = Observation {
            requests: seen.requests,
            resident_bytes: 12 * MIB + i * MIB,
            ..Observation::default()
        };
    };
    let conclusion = judged(&run(80, alone));
    assert_eq!((conclusion.verdict, conclusion.needs), (Verdict::Inconclusive, vec![Need::Recorder]));
    assert_eq!(conclusion.resident.per_request, 1_048.576);
}

/// A Go program: a few kilobytes from malloc, and 7 MiB that the kernel alone knows. Nobody could ask the allocator.
fn go(iterations: u64, resident: impl Fn(u64) -> u64) -> Evidence {
    let fill = |i: u64, seen: &mut Observation| {
        *seen = Observation {
            requests: seen.requests,
            seconds: seen.seconds,
            live_bytes: Some(1_824),
            live_blocks: Some(6),
            resident_bytes: 14 * MIB + resident(i),
            mapped_bytes: Some(7 * MIB),
            areas_bytes: Some(40_960),
            ..Observation::default()
        }
    };
    Evidence { foreign_heap: ForeignHeap::Uncollected, ..run(iterations, fill) }
}

#[test]
fn a_program_whose_heap_is_not_mallocs_is_judged_by_resident_memory() {
    for foreign_heap in [ForeignHeap::Collected, ForeignHeap::Allocator, ForeignHeap::Unknown] {
        let conclusion = judged(&Evidence { foreign_heap, ..go(20, |_| 0) });
        assert_eq!((conclusion.verdict, conclusion.basis), (Verdict::Clean, Basis::Resident));
        // Not 4 bytes: that would be the limit of a heap that it does not use.
        assert_eq!((conclusion.is_elsewhere, conclusion.detectable_per_request), (true, Some(64.0)));
        assert_eq!(conclusion.detectable_outside_per_request, None, "it is the plane that was judged");
    }
}

#[test]
fn what_a_heap_may_hide_until_it_is_collected_is_part_of_what_is_not_seen() {
    // Half of 7 MiB over the 12,000 requests of the window.
    let conclusion = judged(&go(20, |_| 0));
    let hidden = 3.5 * MIB as f64 / 12_000.0;
    assert_eq!(
        (conclusion.verdict, conclusion.detectable_per_request),
        (Verdict::Clean, Some(64.0 + hidden))
    );
    // 100 MiB can hide more than anybody may miss; eight times the requests would show it.
    let conclusion = judged(&go(20, |_| 93 * MIB));
    let seen = 64.0 + 50.0 * MIB as f64 / 12_000.0;
    let times = Some((seen - 64.0) / (640.0 - 64.0));
    let needs = [Need::Iterations(20), Need::Sensitivity { seen, wanted: 640.0, times }];
    assert_eq!((conclusion.verdict, conclusion.needs), (Verdict::Inconclusive, needs.to_vec()));
}

#[test]
fn its_gross_leak_is_a_mapping_that_grows() {
    let conclusion = judged(&go(20, |i| 500_000 * i));
    assert_eq!((conclusion.verdict, conclusion.basis), (Verdict::Mappings, Basis::Resident));
    assert_eq!((conclusion.trend().per_request, conclusion.needs), (500.0, vec![]));
    // A static one, or one that runs already: nothing but resident memory is known.
    let mut alone = go(20, |i| 500_000 * i);
    alone.observations.iter_mut().for_each(|seen| (seen.live_bytes, seen.areas_bytes) = (None, None));
    assert_eq!(verdict(&alone), Verdict::Mappings);
    alone.foreign_heap = ForeignHeap::Unknown;
    assert_eq!(judged(&alone).needs, [Need::Recorder]);
}

#[test]
fn garbage_that_waits_for_a_heap_to_double_is_no_leak_yet() {
    // 100 bytes a request over 20 iterations are 2 MB, and there were 7 MiB.
    let conclusion = judged(&go(20, |i| 100_000 * i));
    assert_eq!(
        (conclusion.verdict, conclusion.needs),
        (Verdict::Inconclusive, vec![Need::Iterations(20), Need::Collection])
    );
    assert_eq!(verdict(&go(80, |i| 100_000 * i)), Verdict::Mappings);
    let collected = Evidence { foreign_heap: ForeignHeap::Collected, ..go(20, |i| 100_000 * i) };
    assert_eq!(verdict(&collected), Verdict::Mappings);
}

#[test]
fn a_leak_below_what_resident_memory_can_show_does_not_pass_when_it_is_there() {
    let conclusion = judged(&go(40, |i| 24_000 * i));
    assert_eq!(
        (conclusion.verdict, conclusion.needs),
        (Verdict::Inconclusive, vec![Need::Iterations(40), Need::OwnTools])
    );
    // A few pages now and then are every program's.
    assert_eq!(verdict(&go(40, |i| 4_000 * i)), Verdict::Plateau);
}

#[test]
fn the_flat_heap_of_a_small_program_that_has_next_to_none_passes_nothing() {
    let small = |per_iteration: u64| {
        let mut evidence = go(40, |i| per_iteration * i);
        evidence.foreign_heap = ForeignHeap::Unknown;
        evidence.observations.iter_mut().for_each(|seen| seen.resident_bytes -= 6 * MIB);
        judged(&evidence)
    };
    let conclusion = small(20_000);
    assert!(!conclusion.is_elsewhere);
    assert_eq!(
        (conclusion.verdict, conclusion.needs),
        (Verdict::Inconclusive, vec![Need::Iterations(40), Need::OwnTools])
    );
    assert_eq!(small(0).verdict, Verdict::Clean);
}

/// A heap that falls by so many bytes an iteration, and wavers by so many.
fn wavering(fall: u64, by: u64) -> Evidence {
    run(20, move |i, seen| seen.live_bytes = Some(100 * MIB - fall * i + by * (i * 7 % 5)))
}

#[test]
fn a_pass_needs_the_requested_sensitivity() {
    let calm = judged(&wavering(0, 1_000));
    assert_eq!((calm.verdict, calm.detectable_per_request), (Verdict::Clean, Some(6.0)));
    // It falls, so nothing grows; but a leak of a kilobyte in each request would have been lost in it.
    let conclusion = judged(&wavering(1_500_000, 700_000));
    let seen = conclusion.detectable_per_request.expect("a window");
    assert!(seen > 1_000.0, "{seen}");
    let needs = [
        Need::Iterations(20),
        Need::Sensitivity { seen, wanted: 40.0, times: Some((seen - 4.0) / (40.0 - 4.0)) },
    ];
    assert_eq!((conclusion.verdict, conclusion.needs), (Verdict::Inconclusive, needs.to_vec()));
    for (asked, verdict) in [(5.0, Verdict::Inconclusive), (6.0, Verdict::Clean)] {
        let rules = Rules { sensitivity_per_request: Some(asked), ..Rules::default() };
        assert_eq!(judge(&wavering(0, 1_000), &rules).verdict, verdict, "{asked}");
    }
    let rules = Rules { sensitivity_per_request: Some(4_000.0), ..Rules::default() };
    assert_eq!(judge(&wavering(1_500_000, 700_000), &rules).verdict, Verdict::Clean);
}

#[test]
fn resident_memory_shows_nothing_below_its_own_limit_however_long_one_looks() {
    let rules = Rules { sensitivity_per_request: Some(16.0), ..Rules::default() };
    let collected = Evidence { foreign_heap: ForeignHeap::Collected, ..go(20, |_| 0) };
    let conclusion = judge(&collected, &rules);
    assert_eq!(conclusion.verdict, Verdict::Inconclusive);
    assert_eq!(conclusion.needs, [Need::Sensitivity { seen: 64.0, wanted: 16.0, times: None }]);
}

#[test]
fn a_managed_heap_has_to_be_seen_as_well_as_the_live_one() {
    // The live heap is still, and a leak of the runtime's objects would not be on it.
    let conclusion = judged(&run(20, |i, seen| seen.managed_bytes = Some(MIB + 1_000 * (i * 7 % 5))));
    assert_eq!((conclusion.verdict, conclusion.detectable_per_request), (Verdict::Clean, Some(6.0)));
}

/// A restless heap, with what two stacks hold of it.
fn restless(iterations: u64, rest: impl Fn(u64) -> u64, leak: impl Fn(u64) -> u64) -> Evidence {
    let mut evidence = run(iterations, |i, seen| {
        seen.live_bytes = Some(20 * MIB + rest(i) + leak(i));
        seen.resident_bytes = 80 * MIB;
    });
    let stack = |id: u32, bytes: &dyn Fn(u64) -> u64| {
        let bytes: Vec<u64> = (1..=iterations).map(bytes).collect();
        StackSeries { id, blocks: bytes.iter().map(|bytes| bytes / 100).collect(), bytes }
    };
    evidence.stacks = Stacks {
        observations: (0..iterations as usize).collect(),
        series: vec![stack(1, &rest), stack(2, &leak)],
    };
    evidence
}

#[test]
fn a_stack_that_grows_by_a_constant_decides_however_noisy_the_rest_is() {
    // A compiler's arenas: megabytes that come, go, and become fewer in the first half.
    let arenas = |i: u64| ((i * 2_654_435_761) >> 7) % 8 * MIB + (40 - i.min(40)) * MIB / 4;
    let leaking = restless(80, arenas, |i| 122_000 * i);
    let conclusion = judged(&leaking);
    assert_eq!((conclusion.verdict, conclusion.basis), (Verdict::Leaking, Basis::Stacks), "{conclusion:?}");
    assert_eq!(conclusion.trend().per_request, 122.0);
    let heap = conclusion.heap.expect("a recorder");
    assert_ne!(heap.shape, Shape::Grows, "it is the stack that decides");
    // Without the leak nothing does.
    assert_eq!(verdict(&restless(80, arenas, |_| 0)), Verdict::Inconclusive);
    // Below the limit it is none; and garbage that waits is none.
    assert_ne!(verdict(&restless(80, arenas, |i| 3_000 * i)), Verdict::Leaking);
    assert_ne!(verdict(&Evidence { uncollected: true, ..leaking }), Verdict::Leaking);
}

#[test]
fn blocks_that_change_their_owner_are_no_leak() {
    // What one stack gives up, the other one holds, on a heap that is restless for a third reason.
    let mut moved = restless(40, |i| (60 - i) * 122_000, |i| i * 122_000);
    for (i, seen) in moved.observations.iter_mut().enumerate() {
        let restless = ((i as u64 * 2_654_435_761) >> 7) % 8 * MIB;
        seen.live_bytes = seen.live_bytes.map(|live| live + restless);
    }
    let conclusion = judged(&moved);
    assert_eq!((conclusion.verdict, conclusion.needs), (Verdict::Inconclusive, vec![Need::Iterations(40)]));
}

#[test]
fn a_stack_that_slows_down_steps_or_began_late_is_no_constant() {
    let arenas = |i: u64| ((i * 2_654_435_761) >> 7) % 8 * MIB;
    let shapes: [fn(u64) -> u64; 4] = [
        |i| (8e6 * (1.0 - (-(i as f64) / 30.0).exp())) as u64,
        |i| i / 20 * 4_000_000,
        |i| i.saturating_sub(40) * 122_000,
        |i| (i % 30) * 122_000,
    ];
    for (at, shape) in shapes.into_iter().enumerate() {
        assert_ne!(verdict(&restless(80, arenas, shape)), Verdict::Leaking, "{at}");
    }
}

#[test]
fn a_heap_that_nobody_collected_is_open_until_its_growth_doubles() {
    let mut evidence = run(20, |i, seen| seen.live_bytes = Some(MIB + 16_000 * i));
    evidence.uncollected = true;
    let conclusion = judged(&evidence);
    assert_eq!((conclusion.verdict, conclusion.needs), (Verdict::Inconclusive, vec![Need::Collection]));
    let mut evidence = run(80, |i, seen| seen.live_bytes = Some(MIB + 16_000 * i));
    evidence.uncollected = true;
    assert_eq!(verdict(&evidence), Verdict::Leaking);
}

#[test]
fn a_managed_heap_that_grows_leaks_wherever_it_lies() {
    let conclusion = judged(&run(20, |i, seen| {
        seen.managed_bytes = Some(MIB + 20_000 * i);
        seen.resident_bytes = 12 * MIB + 20_000 * i;
    }));
    assert_eq!(conclusion.verdict, Verdict::Leaking);
    assert_eq!(conclusion.findings, [Finding::Managed { per_request: 20.0 }]);
}

#[test]
fn growth_with_time_is_told_from_growth_with_requests() {
    let idle = |rate: u64| -> Vec<Observation> {
        let look = |i: u64| Observation {
            requests: 23_500,
            seconds: 20.0 + i as f64,
            live_bytes: Some(2 * MIB + rate * i),
            ..Observation::default()
        };
        (1..=6).map(look).collect()
    };
    // 100 KB a second while it works: all of it comes with time, or a tenth.
    let mut evidence = run(20, |i, seen| seen.live_bytes = Some(MIB + 100_000 * i));
    evidence.idle = idle(100_000);
    let conclusion = judged(&evidence);
    assert_eq!(conclusion.verdict, Verdict::GrowsWhenIdle);
    assert_eq!(conclusion.idle_per_hour, Some((360e6, 360e6, 360e6)));
    evidence.idle = idle(10_000);
    assert_eq!(verdict(&evidence), Verdict::Leaking);
    // And nothing at all with requests.
    let mut evidence = run(20, |_, _| ());
    evidence.idle = idle(10_000);
    assert_eq!(verdict(&evidence), Verdict::GrowsWhenIdle);
}

#[test]
fn a_fault_beyond_the_rules_makes_a_run_invalid() {
    let errors = |failed| Fault::Errors { failed, requests: 1_000, most: "status 500".to_owned() };
    let with = |fault| Evidence { faults: vec![fault], ..run(20, |_, _| ()) };
    assert_eq!(verdict(&with(errors(10))), Verdict::Clean);
    assert_eq!(verdict(&with(errors(11))), Verdict::Invalid);
    assert_eq!(verdict(&with(Fault::Saturated { busy: 0.9 })), Verdict::Clean);
    assert_eq!(verdict(&with(Fault::Saturated { busy: 0.96 })), Verdict::Invalid);
    let lost = Fault::Lost { what: "process 7: at least 12 events were not recorded".to_owned() };
    assert_eq!(verdict(&with(lost)), Verdict::Invalid);
    let died = Fault::Died { how: "exit status 3".to_owned(), requests: 4_000 };
    assert_eq!(verdict(&with(died)), Verdict::Invalid);
}

#[test]
fn few_observations_are_never_growth() {
    for iterations in 1..20 {
        let conclusion = judged(&run(iterations, |i, seen| seen.live_bytes = Some(MIB + 16_000 * i)));
        assert_eq!(conclusion.verdict, Verdict::Inconclusive, "{iterations}");
        assert_eq!(conclusion.needs, [Need::Iterations(20 - iterations as u32)]);
    }
    assert_eq!(verdict(&run(9, |_, _| ())), Verdict::Inconclusive);
    assert_eq!(verdict(&run(10, |_, _| ())), Verdict::Clean);
}

#[test]
fn a_run_of_a_day_is_judged_in_the_same_way() {
    let wobble = |i: u64| 1_000 * (i.wrapping_mul(2_654_435_761) >> 7 & 31);
    let flat = run(20_000, |i, seen| seen.live_bytes = Some(MIB + wobble(i)));
    assert_eq!(verdict(&flat), Verdict::Clean);
    let leak = run(20_000, |i, seen| seen.live_bytes = Some(MIB + wobble(i) + 16_000 * i));
    assert_eq!(verdict(&leak), Verdict::Leaking);
}

fn any_observation() -> impl Strategy<Value = Observation> {
    let metric = || prop_oneof![Just(None), (0..1_u64 << 34).prop_map(Some), Just(Some(u64::MAX))];
    let numbers = (prop_oneof![0..100_000_u64, any::<u64>()], any::<f64>(), any::<u64>(), any::<f64>());
    let metrics = [metric(), metric(), metric(), metric(), metric(), metric(), metric(), metric()];
    (numbers, metrics).prop_map(|((requests, seconds, resident_bytes, rate), metrics)| Observation {
        requests,
        seconds,
        live_bytes: metrics[0],
        live_blocks: metrics[1],
        resident_bytes,
        trimmed_bytes: metrics[2],
        mapped_bytes: metrics[3],
        allocator_bytes: metrics[4],
        held_free_bytes: metrics[5],
        areas_bytes: metrics[3],
        managed_bytes: metrics[6],
        descriptors: metrics[7],
        threads: metrics[7],
        requests_per_second: Some(rate),
    })
}

proptest! {
    #[test]
    fn no_evidence_is_a_panic(
        observations in prop::collection::vec(any_observation(), 0..50),
        idle in prop::collection::vec(any_observation(), 0..8),
        before in prop::option::of(any_observation()),
        uncollected: bool,
        is_foreign: bool,
        limits in prop::option::of((any::<f64>(), any::<u64>())),
    ) {
        let rules = Rules {
            growth_per_request_max: limits.map(|limits| limits.0),
            retained_bytes_max: limits.map(|limits| limits.1),
            ..Rules::default()
        };
        let stack = StackSeries {
            id: 1,
            bytes: observations.iter().map(|seen| seen.resident_bytes).collect(),
            blocks: observations.iter().map(|seen| seen.requests).collect(),
        };
        let observed = observations.len();
        growing_stacks(&observations, std::slice::from_ref(&stack), &rules);
        let foreign_heap = if is_foreign { ForeignHeap::Uncollected } else { ForeignHeap::Unknown };
        let stacks = Stacks { observations: (0..observed).collect(), series: vec![stack] };
        let evidence =
            Evidence { before, observations, idle, uncollected, foreign_heap, stacks, ..Evidence::default() };
        let conclusion = judge(&evidence, &rules);
        prop_assert!(conclusion.window.end == observed && conclusion.window.start <= observed);
    }

    // A leak of the size that a clean run says it would have seen is never passed.
    #[test]
    fn the_detection_limit_holds(noise in prop::collection::vec(0..20_000_u64, 20..81)) {
        let iterations = noise.len() as u64;
        let level = |i: u64| MIB + noise[i as usize - 1];
        let conclusion = judged(&run(iterations, |i, seen| seen.live_bytes = Some(level(i))));
        prop_assume!(conclusion.verdict == Verdict::Clean);
        let least = conclusion.detectable_per_request.expect("there are observations");
        let per_iteration = ((least + 0.01) * 1_000.0) as u64;
        let leaking = run(iterations, |i, seen| seen.live_bytes = Some(level(i) + per_iteration * i));
        let verdict = verdict(&leaking);
        prop_assert!(matches!(verdict, Verdict::Leaking | Verdict::Inconclusive), "{verdict:?}");
    }

    // Nor is one beside the heap, of the size that is told of resident memory.
    #[test]
    fn the_detection_limit_outside_the_heap_holds(noise in prop::collection::vec(0..300_000_u64, 20..81)) {
        let iterations = noise.len() as u64;
        let held = |leak: u64| {
            run(iterations, |i, seen| {
                let bytes = 9 * MIB + noise[i as usize - 1] + leak * i;
                (seen.resident_bytes, seen.trimmed_bytes) = (MIB + bytes, Some(bytes));
            })
        };
        let conclusion = judged(&held(0));
        prop_assume!(conclusion.verdict == Verdict::Clean);
        let least = conclusion.detectable_outside_per_request.expect("there are observations");
        let verdict = verdict(&held(((least + 0.01) * 1_000.0) as u64));
        prop_assert!(verdict != Verdict::Clean && verdict != Verdict::Plateau, "{verdict:?}");
    }
}
