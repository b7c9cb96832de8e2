//! Soaks made by hand, one for each verdict, for the tests of what people see.

use mallow_base::Frame;
use mallow_evidence::{
    Comparison, Growth, HeapMetrics, LatencyMetrics, LoadMetrics, MappingGrowth, Memory, Phase,
    RuntimeMetrics, Sample, Series, SoakReport,
};
use mallow_growth::{
    Basis, Conclusion, Evidence, Fault, Finding, GrowingStack, Need, Observation, Plateau, Shape, Trend,
    Verdict,
};

const MIB: f64 = 1_048_576.0;

/// One of each verdict.
pub fn all() -> Vec<SoakReport> {
    vec![
        leaking(),
        plateau(),
        clean(),
        retention(),
        fragmentation(),
        mappings(),
        grows_when_idle(),
        inconclusive(),
        invalid(),
        compared(),
        go(Verdict::Mappings),
        go(Verdict::Clean),
        steady(),
        managed(),
    ]
}

/// Its heap grows, by three stacks.
pub fn leaking() -> SoakReport {
    let mut report = soak(Verdict::Leaking, 16.0);
    let heap = report.conclusion.heap.as_mut();
    heap.into_iter().for_each(|heap| (heap.per_request_low, heap.per_request_high) = (15.9, 16.1));
    report.memory_limit_bytes = Some(512 << 20);
    report.growth = vec![
        growth(
            "malloc alloc::raw_vec::RawVec::grow session::open@src/session.rs:41 handle@src/main.rs:12 main",
            0.961,
        ),
        growth(
            "malloc session::Table<u64>::insert@src/table.rs:140 session::open@src/session.rs:43 handle main",
            0.03,
        ),
        growth("malloc log::write@src/log.rs:7 main", 0.009),
    ];
    report
}

/// It rose and stopped.
pub fn plateau() -> SoakReport {
    let mut report = soak(Verdict::Plateau, 0.0);
    report.conclusion.plateau = Some(Plateau { rise_bytes: 3.2 * MIB, after_requests: 12_000 });
    report.conclusion.heap = Some(trend(Shape::RoseThenFlat, 0.0, 2.0 * MIB, 5.2 * MIB));
    report.growth = vec![growth("malloc cache::put@src/cache.rs:88 handle@src/main.rs:19 main", 0.99)];
    report
}

/// Nothing grows.
pub fn clean() -> SoakReport {
    soak(Verdict::Clean, 0.0)
}

/// The allocator keeps what was freed.
pub fn retention() -> SoakReport {
    let mut report = soak(Verdict::Retention, 0.0);
    report.conclusion.resident = trend(Shape::RoseThenFlat, 0.0, 20.0 * MIB, 120.0 * MIB);
    report.conclusion.trimmed = Some(trend(Shape::Flat, 0.0, 18.0 * MIB, 19.0 * MIB));
    report
}

/// Free memory between blocks in use.
pub fn fragmentation() -> SoakReport {
    let mut report = soak(Verdict::Fragmentation, 0.0);
    report.conclusion.resident = trend(Shape::Grows, 900.0, 20.0 * MIB, 120.0 * MIB);
    report.conclusion.trimmed = Some(trend(Shape::Grows, 890.0, 20.0 * MIB, 118.0 * MIB));
    report
}

/// It grows by mappings of its own.
pub fn mappings() -> SoakReport {
    let mut report = soak(Verdict::Mappings, 0.0);
    report.conclusion.basis = Basis::Resident;
    report.conclusion.resident = trend(Shape::Grows, 4096.0, 20.0 * MIB, 430.0 * MIB);
    report.conclusion.trimmed = Some(trend(Shape::Grows, 4096.0, 20.0 * MIB, 430.0 * MIB));
    let mapping = |name: &str, after: f64, count| MappingGrowth {
        name: name.into(),
        before_bytes: (4.0 * MIB) as u64,
        after_bytes: (after * MIB) as u64,
        count,
    };
    report.mappings =
        vec![mapping("[anonymous]", 414.0, (3, 1203)), mapping("/var/tmp/index.bin", 4.5, (1, 1))];
    report
}

/// A Go program: two kilobytes are malloc's.
pub fn go(verdict: Verdict) -> SoakReport {
    let mut report = mappings();
    report.conclusion.verdict = verdict;
    report.conclusion.is_elsewhere = true;
    report.conclusion.detectable_per_request = Some(81.4);
    report.conclusion.detectable_outside_per_request = None;
    report.samples.iter_mut().for_each(|sample| sample.foreign_heap = Some("go".into()));
    report.evidence.observations.iter_mut().for_each(|seen| seen.live_bytes = Some(2_048));
    report
}

/// A leak in a heap that is restless otherwise.
pub fn steady() -> SoakReport {
    let mut report = leaking();
    report.conclusion.basis = Basis::Stacks;
    report.conclusion.steady = report.conclusion.heap;
    report.conclusion.heap = Some(trend(Shape::Unclear, -224.0, 23.4 * MIB, 24.7 * MIB));
    report
}

/// A leak of a runtime's objects.
pub fn managed() -> SoakReport {
    let mut report = leaking();
    report.conclusion.basis = Basis::ManagedHeap;
    report.conclusion.managed = report.conclusion.heap;
    report.conclusion.heap = Some(trend(Shape::Flat, 1.7, 5.0 * MIB, 5.1 * MIB));
    let runtime = RuntimeMetrics { name: "node".into(), managed_bytes: 5 << 20, ..RuntimeMetrics::default() };
    report.samples.iter_mut().for_each(|sample| sample.runtimes = vec![runtime.clone()]);
    report
}

/// It grows while nothing is asked.
pub fn grows_when_idle() -> SoakReport {
    let mut report = soak(Verdict::GrowsWhenIdle, 0.0);
    report.conclusion.idle_per_hour = Some((352.0 * MIB, 350.0 * MIB, 354.0 * MIB));
    report
}

/// Not enough was seen.
pub fn inconclusive() -> SoakReport {
    let mut report = soak(Verdict::Inconclusive, 3.0);
    report.conclusion.heap = Some(trend(Shape::Unclear, 3.0, 2.0 * MIB, 2.3 * MIB));
    report.conclusion.needs = vec![Need::Iterations(20), Need::Collection, Need::Recorder, Need::Idle];
    report.warnings = vec!["the server was not idle after 3 s at 4 looks".into()];
    report
}

/// The load did not come through.
pub fn invalid() -> SoakReport {
    let mut report = soak(Verdict::Invalid, 0.0);
    report.evidence.faults = vec![
        Fault::Errors { failed: 312, requests: 20_000, most: "status 500".into() },
        Fault::Died { how: "killed by signal 11".into(), requests: 20_000 },
        Fault::Unread { process: "process 7 (app)".into(), cause: "Permission denied (os error 13)".into() },
    ];
    for sample in &mut report.samples {
        if let Some(load) = &mut sample.load {
            load.succeeded = load.requests - 15;
            load.failures = [("status 500".to_owned(), 13), ("timeout".to_owned(), 2)].into();
        }
    }
    report.server_end = "killed by signal 11".into();
    report
}

/// Clean, with findings, on a schedule, and worse than another one.
pub fn compared() -> SoakReport {
    let mut report = clean();
    report.conclusion.findings = vec![
        Finding::Descriptors { more: 80.0, per_request: 0.01 },
        Finding::Throughput { ratio: 0.72 },
        Finding::Managed { per_request: 12.0 },
    ];
    for load in report.samples.iter_mut().filter_map(|sample| sample.load.as_mut()) {
        load.corrected =
            load.latency.map(|raw| LatencyMetrics { p99_us: 31_000, worst_us: Some(95_000), ..raw });
    }
    let series = |name, unit, before, after, difference, worse| Series {
        name,
        unit,
        before,
        after,
        difference,
        worse,
    };
    report.comparison = Some(Comparison {
        baseline: "soak-1.4.json".into(),
        series_list: vec![
            series("live heap per request", "B/request", 0.1, 2.3, (2.0, 2.4), true),
            series("resident", "B", 17.0 * MIB, 18.0 * MIB, (0.5 * MIB, 1.5 * MIB), false),
            series("requests a second", "/s", 5012.0, 4890.0, (-300.0, 56.0), false),
            series("latency, 99 of 100", "µs", 9000.0, 9100.0, (-100.0, 300.0), false),
        ],
    });
    report
}

fn trend(shape: Shape, per_request: f64, first: f64, last: f64) -> Trend {
    Trend {
        shape,
        per_request,
        per_request_low: per_request - 0.7,
        per_request_high: per_request + 0.7,
        first,
        last,
        noise: 100.0,
    }
}

fn growth(stack: &str, share: f64) -> Growth {
    let trend = trend(Shape::Grows, 16.0 * share, 0.0, 0.0);
    let frames = crate::check::stack(stack);
    let stack = GrowingStack { id: 1, trend, blocks_per_request: share, share };
    let last = (1_600_000.0 * share) as u64;
    Growth {
        frames: frames.into_iter().collect::<Vec<Frame>>(),
        stack,
        bytes: (last / 10, last),
        blocks: (last / 160, last / 16),
    }
}

/// 20 iterations of 5,000 requests whose live heap grows by so many bytes for each.
fn soak(verdict: Verdict, per_request: f64) -> SoakReport {
    let mut samples = vec![sample(1, Phase::Idle, 0, per_request)];
    samples.push(sample(2, Phase::Burst, 5_000, per_request));
    for number in 3..=4 {
        samples.push(sample(number, Phase::WarmUp, u64::from(number - 1) * 5_000, per_request));
    }
    for number in 5..=24 {
        samples.push(sample(number, Phase::Measured, u64::from(number - 1) * 5_000, per_request));
    }
    samples.push(sample(25, Phase::IdleControl, 115_000, per_request));
    let measured = samples.iter().filter(|sample| sample.phase == Phase::Measured);
    let observations: Vec<Observation> = measured.map(observation).collect();
    let live = |at: usize| observations.get(at).and_then(|seen| seen.live_bytes).unwrap_or(0) as f64;
    let shape = if per_request > 4.0 { Shape::Grows } else { Shape::Flat };
    let conclusion = Conclusion {
        verdict,
        basis: Basis::LiveHeap,
        by_age: false,
        is_elsewhere: false,
        window: 10..20,
        heap: Some(trend(shape, per_request, live(0), live(19))),
        steady: None,
        resident: trend(shape, per_request * 1.1, 17.0 * MIB, 17.0 * MIB + per_request * 100_000.0),
        trimmed: None,
        mapped: None,
        allocator: Some(trend(shape, per_request * 1.2, 4.0 * MIB, 4.0 * MIB + per_request * 120_000.0)),
        managed: None,
        idle_per_hour: Some((1024.0, 0.0, 4096.0)),
        detectable_per_request: Some(4.2),
        detectable_outside_per_request: Some(81.4),
        plateau: None,
        findings: Vec::new(),
        needs: Vec::new(),
    };
    SoakReport {
        command: vec!["./server".into(), "--port".into(), "3030".into()],
        pid: 72_930,
        work: "http://127.0.0.1:3030/ (50 connections, HTTP/1.1)".into(),
        started_unix_us: 1_700_000_000_000_000,
        seconds: 41.2,
        samples,
        evidence: Evidence { observations, ..Evidence::default() },
        conclusion,
        memory_limit_bytes: None,
        growth: Vec::new(),
        mappings: Vec::new(),
        edges: None,
        snapshots: None,
        server_end: "exit status 0".into(),
        unrecorded: None,
        warnings: Vec::new(),
        comparison: None,
    }
}

fn sample(number: u32, phase: Phase, requests_total: u64, per_request: f64) -> Sample {
    let has_load = !matches!(phase, Phase::Idle | Phase::IdleControl);
    let latency = LatencyMetrics {
        p50_us: 850,
        p90_us: 2_100,
        p99_us: 9_120,
        p999_us: Some(21_000),
        worst_us: Some(40_400),
    };
    let load = LoadMetrics {
        requests: 5_000,
        succeeded: 5_000,
        seconds: 1.0,
        rate: 5_000.0,
        latency: Some(latency),
        generator_busy: Some(0.31),
        ..LoadMetrics::default()
    };
    let grown = (requests_total as f64 * per_request) as u64;
    let memory = |more: u64| Memory { rss_bytes: 17 * 1_048_576 + grown + more, ..Memory::default() };
    Sample {
        number,
        phase,
        seconds: f64::from(number) * 1.5,
        requests_total,
        load: has_load.then_some(load),
        heap: Some(HeapMetrics {
            live_bytes: 2_097_152 + grown,
            live_blocks: 512,
            allocations: requests_total * 7,
        }),
        memory_before: memory(0),
        memory: memory(400_000),
        memory_trimmed: Some(memory(0)),
        descriptors: 12,
        threads: 5,
        processes: 1,
        settle_ms: 212,
        ..Sample::default()
    }
}

fn observation(sample: &Sample) -> Observation {
    Observation {
        requests: sample.requests_total,
        seconds: sample.seconds,
        live_bytes: sample.heap.map(|heap| heap.live_bytes),
        live_blocks: sample.heap.map(|heap| heap.live_blocks),
        resident_bytes: sample.memory.rss_bytes,
        trimmed_bytes: sample.memory_trimmed.map(|memory| memory.rss_bytes),
        descriptors: Some(sample.descriptors),
        threads: Some(sample.threads),
        requests_per_second: sample.load.as_ref().map(|load| load.rate),
        ..Observation::default()
    }
}
