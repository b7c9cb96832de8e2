//! Results made by hand, with every verdict, for the tests of what people see.

use mallow_base::Frame;
use mallow_gate::measurement::{Environment, Measurement, Metric, Metrics, Run, Site};
use mallow_gate::result::{
    CheckResult, Conclusion, Outcome, Position, SiteChange, Spread, TestResult, VaryingSite, Window,
};

/// Where the samples ran.
pub fn environment() -> Environment {
    Environment {
        architecture: "x86_64".into(),
        libc: "glibc 2.36".into(),
        runtime: "native".into(),
        allocator: "libc".into(),
        processors: 2,
        counting: 1,
    }
}

/// A test of which nothing is known but its verdict.
pub fn bare(name: &str, outcome: Outcome) -> TestResult {
    TestResult {
        sentences: Vec::new(),
        duration_us: 250_000,
        ..TestResult::unmeasured(name, outcome, String::new())
    }
}

/// A stack, innermost first, of `function@file:line` in blanks.
pub fn stack(text: &str) -> Vec<Frame> {
    let frame = |text: &str| {
        let (function, place) = text.split_once('@').unwrap_or((text, ""));
        let (file, line) = place.split_once(':').unwrap_or((place, ""));
        Frame {
            function: function.into(),
            file: (!file.is_empty()).then(|| format!("/srv/checkout/{file}")),
            line: line.parse().ok(),
            module: Some("/srv/checkout/target/test".into()),
            ..Frame::default()
        }
    };
    text.split(' ').map(frame).collect()
}

/// A test whose runs had so many allocations, of 32 bytes each, and left so many blocks and descriptors.
fn measured(name: &str, outcome: Outcome, ops: Option<u64>, runs: &[(u64, u64, u64)]) -> TestResult {
    let run = |(allocations, remaining, descriptors): &(u64, u64, u64)| Run {
        metrics: Metrics {
            allocations: *allocations,
            bytes: allocations * 32,
            peak_bytes: 320,
            remaining_blocks: *remaining,
            remaining_bytes: remaining * 64,
            descriptors: *descriptors,
            ..Metrics::default()
        },
        settled: true,
        waited_us: 900,
        ..Run::default()
    };
    let measurement = Measurement {
        name: name.to_owned(),
        region: String::new(),
        ops,
        runs: runs.iter().map(run).collect(),
        warmups: 1,
        environment: environment(),
        notes: Vec::new(),
        unseen: Vec::new(),
        is_marked: true,
    };
    let conclusions = Metric::ALL.into_iter().filter_map(|metric| judged(&measurement, metric)).collect();
    TestResult { measurement: Some(measurement), conclusions, ..bare(name, outcome) }
}

fn judged(measurement: &Measurement, metric: Metric) -> Option<Conclusion> {
    let mut values: Vec<u64> = measurement.runs.iter().map(|run| run.of(metric)).collect::<Option<_>>()?;
    values.sort_unstable();
    let (min, max) = (values.first().copied().unwrap_or(0), values.last().copied().unwrap_or(0));
    let at_min = values.iter().filter(|value| **value == min).count() as u32;
    // The samples have at most two values, and the greater one is the more frequent where there are two.
    let spread = Spread { min, mode: max, max, at_min, runs: values.len() as u32 };
    Some(Conclusion { metric, spread, reference: Some(min), window: None, position: Position::Within })
}

/// Says what the baseline has, and so how the test stands; allowed is exactly that.
fn against(test: &mut TestResult, metric: Metric, reference: Option<u64>) {
    for conclusion in test.conclusions.iter_mut().filter(|conclusion| conclusion.metric == metric) {
        conclusion.reference = reference;
        conclusion.window = reference.map(|value| Window { min: value, max: value });
        conclusion.position = match reference {
            None => Position::Free,
            Some(value) if conclusion.spread.min > value => Position::Above,
            Some(value) if conclusion.spread.min < value => Position::Below,
            Some(_) => Position::Within,
        };
    }
}

fn metrics(allocations: u64) -> Metrics {
    Metrics { allocations, bytes: allocations * 32, ..Metrics::default() }
}

fn change(text: &str, before: Option<u64>, after: Option<u64>, exact: bool) -> SiteChange {
    SiteChange {
        frames: stack(text),
        before: before.map(metrics),
        after: after.map(metrics),
        exact,
        blamed: None,
    }
}

fn left(text: &str, blocks: u64, descriptors: u64) -> Site {
    let metrics =
        Metrics { remaining_blocks: blocks, remaining_bytes: blocks * 64, descriptors, ..Metrics::default() };
    Site { frames: stack(text), metrics }
}

/// One allocation more per operation, and a dozen stacks that changed a little.
pub fn regressed() -> TestResult {
    let mut test = measured("buffer_rw", Outcome::Regressed, Some(1000), &[(3040, 0, 0); 10]);
    against(&mut test, Metric::Allocations, Some(2000));
    test.sentences = vec![
        "allocations: 3,040 per run, 1,040 more than the baseline's 2,000 (+1.040 per operation); 2,010 allowed."
            .into(),
    ];
    test.changes = vec![
        change(
            "malloc Buffer::grow@src/buf.rs:88 encode@src/codec.rs:12 run@gate/test_buffer_rw.rs:9 main@gate/test_buffer_rw.rs:20 __libc_start_call_main _start",
            None,
            Some(1000),
            true,
        ),
        change(
            "malloc std::collections::reserve_rehash a_function_with_quite_a_long_name_that_takes_all_the_room@src/table.rs:140 insert@src/table.rs:40 main",
            Some(10),
            Some(40),
            false,
        ),
        change("malloc copy@src/buf.rs:12 main", Some(60), Some(10), true),
    ];
    for at in 0..12 {
        test.changes.push(change(
            &format!("malloc small_{at}@src/small.rs:{} main", at + 1),
            Some(1),
            Some(6),
            true,
        ));
    }
    test
}

/// Leaks of blocks and descriptors, in a test that does not say how many operations it makes.
pub fn leaking() -> TestResult {
    let mut test = measured("rst_fd_leak", Outcome::Regressed, None, &[(140_020, 10, 2); 10]);
    against(&mut test, Metric::Allocations, Some(140_000));
    against(&mut test, Metric::Remaining, Some(0));
    against(&mut test, Metric::Descriptors, Some(0));
    test.sentences = vec![
        "allocations: 140,020 per run, 20 more than the baseline's 140,000; 140,000 allowed.".into(),
        "remaining: 10 per run, 10 more than the baseline's 0; 0 allowed.".into(),
        "descriptors: 2 per run, 2 more than the baseline's 0; 0 allowed.".into(),
    ];
    test.changes = vec![
        change(
            "malloc remember@src/session.c:31 accept_one@src/server.c:77 main@gate/test_rst_fd_leak.c:8",
            None,
            Some(10),
            true,
        ),
        change(
            "calloc set_timer@src/timer.c:9 accept_one@src/server.c:80 main@gate/test_rst_fd_leak.c:8",
            Some(1000),
            Some(1010),
            true,
        ),
    ];
    test.left = vec![
        left(
            "malloc remember@src/session.c:31 accept_one@src/server.c:77 main@gate/test_rst_fd_leak.c:8",
            10,
            0,
        ),
        left("accept4 accept_one@src/server.c:70 main@gate/test_rst_fd_leak.c:8", 0, 2),
    ];
    test
}

/// As many allocations, but larger ones.
pub fn larger() -> TestResult {
    let mut test = measured("row_sizes", Outcome::Regressed, Some(1), &[(12, 0, 0); 10]);
    against(&mut test, Metric::Bytes, Some(192));
    test.sentences = vec![
        "bytes: 384 per run, 192 more than the baseline's 192 (+192.000 per operation); 200 allowed.".into(),
    ];
    let mut larger = change("malloc row@src/row.c:4 main@gate/test_row_sizes.c:9", Some(12), Some(12), true);
    larger.before = Some(Metrics { allocations: 12, bytes: 192, ..Metrics::default() });
    test.changes = vec![larger];
    test
}

/// A pool of threads that sometimes starts one more.
pub fn flaky() -> TestResult {
    let mut runs = vec![(12, 0, 0); 3];
    runs.extend([(26, 1, 0); 17]);
    let mut test = measured("thread_hop", Outcome::Flaky, Some(1000), &runs);
    test.sentences = vec![
        "allocations: the runs differ too much to be judged, from 12 to 26, the least in 3 of 20; the sites that vary are \
         listed."
            .into(),
    ];
    let spread = Spread { min: 0, mode: 12, max: 12, at_min: 3, runs: 20 };
    test.varying = vec![
        VaryingSite {
            frames: stack("calloc pthread_create spawn@src/pool.c:20 post@src/pool.c:50 main"),
            allocations: spread,
        },
        VaryingSite {
            frames: stack("malloc name_of@src/pool.c:9 spawn@src/pool.c:22 post@src/pool.c:50 main"),
            allocations: Spread { max: 2, mode: 2, ..spread },
        },
    ];
    test.left = vec![left("calloc pthread_create spawn@src/pool.c:20 post@src/pool.c:50 main", 1, 0)];
    test
}

/// Two ways through `drain` that look the same in text, because only the innermost frame has its line there.
pub fn look_alikes() -> TestResult {
    let mut test = measured("drain", Outcome::Flaky, None, &[(2, 2, 0), (5, 2, 0), (9, 2, 0)]);
    let of_line = |line: u32| {
        let mut frames = stack("malloc grow@src/pool.c:9 lib:drain main@gate/test_drain.c:4");
        (frames[2].module, frames[2].line) = (Some("/usr/lib/libpool.so".into()), Some(line));
        frames
    };
    let by_run = [[2, 0], [0, 5], [4, 5]];
    for (run, counts) in test.measurement.iter_mut().flat_map(|of| &mut of.runs).zip(by_run) {
        let lines = [20, 30].into_iter().zip(counts);
        run.sites =
            lines.map(|(line, count)| Site { frames: of_line(line), metrics: metrics(count) }).collect();
    }
    for (line, max) in [(20, 4), (30, 5)] {
        let allocations = Spread { min: 0, mode: max, max, at_min: 1, runs: 3 };
        test.varying.push(VaryingSite { frames: of_line(line), allocations });
        let metrics = Metrics { remaining_blocks: 1, remaining_bytes: 64, ..Metrics::default() };
        test.left.push(Site { frames: of_line(line), metrics });
    }
    against(&mut test, Metric::Remaining, None);
    test
}

fn improved() -> TestResult {
    let mut test = measured("ring_modify", Outcome::Improved, Some(1000), &[(0, 0, 0); 10]);
    against(&mut test, Metric::Allocations, Some(1000));
    test.sentences = vec![
        "allocations: 0 per run, 1,000 fewer than the baseline's 1,000 (-1.000 per operation); keep the win with `mallow \
         check --update --only ring_modify`."
            .into(),
    ];
    test.changes =
        vec![change("malloc copy@src/ring.rs:7 modify@src/ring.rs:30 main", Some(1000), None, true)];
    test
}

fn missing() -> TestResult {
    let mut test = measured("cow_copy", Outcome::Missing, Some(1000), &[(1000, 1, 0); 10]);
    Metric::ALL.into_iter().for_each(|metric| against(&mut test, metric, None));
    test.sentences = vec![
        "There is no baseline and no limit for its allocations; `mallow check --update --only cow_copy` makes the baseline.".into(),
    ];
    test.left = vec![left("malloc table@src/cow.c:3 main@gate/test_cow_copy.c:9", 1, 0)];
    test
}

fn blind() -> TestResult {
    let mut test = measured("header_map", Outcome::Blind, Some(1000), &[(0, 0, 0); 10]);
    against(&mut test, Metric::Allocations, Some(9000));
    test.sentences = vec![
        "The baseline has 9,000 allocations and none was seen: the program is linked statically.".into(),
    ];
    test
}

/// A check with every verdict.
pub fn check() -> CheckResult {
    let mut slow = measured("header_split", Outcome::Ok, Some(10_000), &[(50_000, 0, 0); 10]);
    if let Some(measurement) = &mut slow.measurement {
        measurement
            .notes
            .push("In 2 of 10 runs the blocks that were left behind did not become stable in time.".into());
    }
    let mut crashed = bare("crashes", Outcome::Error);
    crashed.sentences = vec![
        "The program was killed by SIGSEGV in its third run; the last line it printed was:".into(),
        "about to crash\x1b[31m".into(),
    ];
    let mut stale = bare("old_name", Outcome::Stale);
    stale.sentences = vec!["gate/baselines/old_name.json is for a test that is not in the suite.".into()];
    CheckResult {
        tests: vec![
            measured("ping_pong", Outcome::Ok, Some(1000), &[(0, 0, 0); 10]),
            regressed(),
            slow,
            flaky(),
            improved(),
            missing(),
            blind(),
            crashed,
            leaking(),
            larger(),
            measured(
                "http_keepalive.parse_a_request_with_many_headers",
                Outcome::Ok,
                Some(1000),
                &[(27_350, 0, 0); 10],
            ),
            stale,
        ],
        environment: environment(),
        sentences: Vec::new(),
        update_command: "mallow check gate --update".into(),
        folder: "/tmp/mallow-check/gate-3f2a".into(),
    }
}

/// A check in which all is well.
pub fn fine() -> CheckResult {
    CheckResult {
        tests: vec![
            measured("ping_pong", Outcome::Ok, Some(1000), &[(0, 0, 0); 10]),
            measured("header_split", Outcome::Ok, Some(10_000), &[(50_000, 0, 0); 10]),
        ],
        ..check()
    }
}

/// The blind test's check: all counts are gone at once.
pub fn all_blind() -> CheckResult {
    CheckResult {
        tests: vec![blind()],
        sentences: vec![
            "All 1 tests that had allocations have none now, which no change of a program does: the hooks do not see it."
                .into(),
        ],
        ..check()
    }
}
