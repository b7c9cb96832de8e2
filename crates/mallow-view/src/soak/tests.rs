//! Rows of soaks made by hand.

use super::*;
use mallow_base::Frame;
use mallow_evidence::{Growth, HeapMetrics, LatencyMetrics, LoadMetrics};
use mallow_growth::{Evidence, GrowingStack, Observation, Verdict};

fn load(rate: f64, p99_us: u64, worst_us: u64) -> LoadMetrics {
    let latency =
        LatencyMetrics { p50_us: 100, p90_us: 200, p99_us, p999_us: Some(900), worst_us: Some(worst_us) };
    LoadMetrics {
        requests: 1000,
        succeeded: 999,
        failures: [("status 500".to_owned(), 1)].into(),
        seconds: 0.2,
        rate,
        latency: Some(latency),
        ..LoadMetrics::default()
    }
}

fn samples() -> Vec<Sample> {
    let sample = |number: u32, phase, load| Sample {
        number,
        phase,
        requests_total: u64::from(number) * 1000,
        load,
        heap: Some(HeapMetrics { live_bytes: 5000, live_blocks: 50, allocations: u64::from(number) * 7000 }),
        ..Sample::default()
    };
    vec![
        sample(0, Phase::Idle, None),
        sample(1, Phase::Burst, Some(load(9000.0, 9000, 90_000))),
        sample(2, Phase::WarmUp, Some(load(4000.0, 800, 1000))),
        sample(3, Phase::Measured, Some(load(5000.0, 500, 1500))),
        sample(4, Phase::Measured, Some(load(5100.0, 700, 1200))),
        sample(5, Phase::Measured, Some(load(4900.0, 600, 7000))),
        sample(5, Phase::IdleControl, None),
    ]
}

fn trend(per_request: f64) -> Trend {
    Trend {
        shape: Shape::Grows,
        per_request,
        per_request_low: per_request - 0.5,
        per_request_high: per_request + 0.5,
        ..Trend::default()
    }
}

fn report() -> SoakReport {
    let seen = |requests: u64| Observation {
        requests,
        live_bytes: Some(requests * 16),
        resident_bytes: 1 << 20,
        descriptors: Some(7),
        ..Observation::default()
    };
    let evidence = Evidence { observations: vec![seen(3000), seen(4000), seen(5000)], ..Evidence::default() };
    let mut conclusion = mallow_growth::judge(&evidence, &mallow_growth::Rules::default());
    conclusion.verdict = Verdict::Leaking;
    conclusion.heap = Some(trend(16.0));
    conclusion.resident = trend(20.0);
    conclusion.allocator = Some(trend(18.0));
    conclusion.managed = None;
    SoakReport {
        command: vec!["./server".into()],
        pid: 72_930,
        work: String::new(),
        started_unix_us: 0,
        seconds: 4.0,
        samples: samples(),
        evidence,
        conclusion,
        memory_limit_bytes: Some(513 << 20),
        growth: Vec::new(),
        mappings: Vec::new(),
        edges: None,
        snapshots: None,
        server_end: String::new(),
        unrecorded: None,
        warnings: Vec::new(),
        comparison: None,
    }
}

fn frames(names: &[&str]) -> Vec<Frame> {
    names.iter().map(|name| Frame { function: (*name).into(), ..Frame::default() }).collect()
}

#[test]
fn a_pace_is_the_middle_rate_times_the_growth() {
    let pace = pace(&report()).unwrap_or_default();
    assert_eq!(pace.requests_per_second, 5000.0);
    assert_eq!(pace.bytes_per_day, 16.0 * 5000.0 * 86_400.0);
    // 512 MiB are left, at 80,000 bytes a second.
    assert_eq!(pace.limit, Some((513 << 20, Some(6710.8864))));
}

#[test]
fn worst_is_the_greatest_of_judged_iterations_and_no_percentile() {
    let rows = latencies(&samples());
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].p50_us, rows[0].p99_us, rows[0].worst_us), (Some(100.0), Some(600.0), Some(7000)));
    assert!(latencies(&[]).is_empty());
}

#[test]
fn what_was_asked_counts_judged_iterations_alone() {
    let asked = asked(&samples());
    assert_eq!((asked.iterations, asked.requests), (3, 3000));
    assert_eq!(asked.failures, [("status 500".to_owned(), 3)]);
    assert_eq!(asked.rates, Some((5000.0, 4900.0)));
}

#[test]
fn phases_follow_one_another_over_requests() {
    let expected = [
        (Phase::Idle, 0, 0),
        (Phase::Burst, 0, 1000),
        (Phase::WarmUp, 1000, 2000),
        (Phase::Measured, 2000, 5000),
        (Phase::IdleControl, 5000, 5000),
    ];
    assert_eq!(phases(&samples()), expected);
}

#[test]
fn stacks_that_look_the_same_are_one_row() {
    let growth = |names: &[&str], share: f64| Growth {
        frames: frames(names),
        stack: GrowingStack { id: 0, trend: trend(16.0 * share), blocks_per_request: share, share },
        bytes: (100, 200),
        blocks: (1, 2),
    };
    let mut report = report();
    report.growth = vec![
        growth(&["malloc", "b", "core::ops::function::Fn::call"], 0.375),
        growth(&["malloc", "a"], 0.5),
        growth(&["calloc", "b"], 0.25),
    ];
    let all = growing(&report, 5);
    let shown: Vec<(&str, f64, u64)> =
        all.rows.iter().map(|row| (row.frames[0].function.as_str(), row.share, row.bytes.1)).collect();
    assert_eq!(shown, [("b", 0.625, 400), ("a", 0.5, 200)]);
    let one = growing(&report, 1);
    assert_eq!((one.rows.len(), one.more, one.more_share), (1, 1, 0.5));
}

#[test]
fn series_list_that_were_not_seen_are_left_out() {
    let report = report();
    let names: Vec<&str> = series_list(&report).iter().map(|row| row.key).collect();
    assert_eq!(names, ["live_heap", "resident", "allocator", "descriptors"]);
    let split = split(&report).map(|split| (split.managed, split.native, split.allocator));
    assert_eq!(split, Some((None, Some(16.0), Some(2.0))));
}

#[test]
fn of_one_observation_nobody_knows_what_grows() {
    let mut report = report();
    report.evidence.observations.truncate(1);
    let rows = series_list(&report);
    assert!(rows.iter().all(|row| row.per_request.is_none()), "{rows:?}");
    assert_eq!((rows.len(), split(&report)), (4, None));
    let side = Side::of(&report);
    assert_eq!((side.heap_per_request, side.resident_per_request), (None, None), "nothing to compare by");
}

#[test]
fn what_is_worse_beyond_doubt_is_told_from_noise() {
    let side = |value: f64, half: f64| Side {
        heap_per_request: Some(Interval { value, low: value - half, high: value + half }),
        ..Side::default()
    };
    let worse = |before: &Side, after: &Side| {
        let series_list = compare(before, after, "old", 1.0).series_list;
        assert_eq!(series_list.len(), 1);
        series_list[0].worse
    };
    assert!(worse(&side(0.0, 0.3), &side(2.0, 0.4)));
    assert!(!worse(&side(0.0, 1.0), &side(2.0, 1.0)), "1.41 of doubt");
    assert!(!worse(&side(16.0, 0.1), &side(2.0, 0.1)), "better");
    let rate = |value| Side { rate: Some(Interval { value, low: value, high: value }), ..Side::default() };
    assert!(worse(&rate(1000.0), &rate(700.0)));
    assert!(!worse(&rate(1000.0), &rate(900.0)));
}

#[test]
fn a_report_has_two_sides() {
    let side = Side::of(&report());
    assert_eq!(side.allocations_per_request.map(|side| side.value), Some(7.0));
    assert_eq!(side.rate.map(|side| side.value), Some(5000.0));
    assert_eq!(side.p99_us.map(|side| side.value), Some(600.0));
    assert_eq!(side.heap_level.map(|side| side.value), Some(72_000.0));
    let same = compare(&side, &side, "old", 4.0);
    assert!(same.series_list.iter().all(|series| !series.worse && series.before == series.after), "{same:?}");
    assert_eq!(same.series_list.len(), 7);
}

#[test]
fn memory_elsewhere_is_told_with_its_runtime() {
    let mut report = report();
    assert_eq!(elsewhere(&report), None);
    report.conclusion.is_elsewhere = true;
    let unknown = Elsewhere { live_bytes: Some(80_000), resident_bytes: 1 << 20, holder: Holder::Unknown };
    assert_eq!(elsewhere(&report), Some(unknown));
    for (number, name, holder) in [
        (1, "unknown", Holder::Unknown),
        (2, "malloc", Holder::OwnMalloc),
        (2, "jemalloc", Holder::Linked("jemalloc")),
        (3, "go", Holder::Go),
    ] {
        report.samples[number].foreign_heap = Some(name.into());
        assert_eq!(elsewhere(&report).map(|found| found.holder), Some(holder));
    }
}
