//! The file byte for byte, round trips, damage.

use super::*;
use crate::measurement::{Metrics, Run};
use crate::sample::{baseline, counts, frame, measurement, of_runs, run, site};
use mallow_base::Frame;
use proptest::prelude::*;

fn sample() -> Baseline {
    let mut inlined = site("push", 12, 3, 2);
    inlined.frames.insert(0, Frame { inlined: true, ..frame("grow<T>+0x1f", "/srv/demo/src/buf.c", 88) });
    let sites = vec![site("encode", 40, 1000, 0), inlined];
    let machine =
        Machine { kernel: "6.1".to_owned(), distribution: "Debian 12".to_owned(), cpu: String::new() };
    Baseline::of(&of_runs(Some(1000), vec![run(sites); 10]), &machine).expect("it has runs")
}

const TEXT: &str = r#"{
  "environment": {"allocator":"libc","architecture":"x86_64","counting":1,"libc":"glibc 2.36","processors":2,"runtime":"native"},
  "figures": {
    "allocations": {"at_min":10,"max":1003,"min":1003,"mode":1003},
    "bytes": {"at_min":10,"max":16048,"min":16048,"mode":16048},
    "descriptors": {"at_min":10,"max":0,"min":0,"mode":0},
    "peak": {"at_min":10,"max":0,"min":0,"mode":0},
    "remaining": {"at_min":10,"max":2,"min":2,"mode":2},
    "remaining_bytes": {"at_min":10,"max":32,"min":32,"mode":32}
  },
  "frames": {
    "KEY-encode": {"file":"src/buf.c","function":"encode","line":40,"module":"bench"},
    "KEY-grow": {"file":"src/buf.c","function":"grow<T>","inlined":true,"line":88,"module":"bench"},
    "KEY-main": {"file":"src/main.c","function":"main","line":9,"module":"bench"},
    "KEY-push": {"file":"src/buf.c","function":"push","line":12,"module":"bench"}
  },
  "machine": {"distribution":"Debian 12","kernel":"6.1"},
  "name": "encode",
  "ops": 1000,
  "runs": 10,
  "schema": "mallow.baseline/1",
  "sites": [
    {"allocations":1000,"bytes":16000,"stack":"KEY-encode KEY-main"},
    {"allocations":3,"bytes":48,"outer":1,"remaining":2,"remaining_bytes":32,"stack":"KEY-grow KEY-push"}
  ]
}
"#;

/// A file's text with keys that say whose they are.
fn with_plain_keys(text: &str) -> String {
    let mut plain = text.to_owned();
    for function in ["encode", "grow", "main", "push"] {
        let line = text.lines().find(|line| line.contains(&format!("\"function\":\"{function}")));
        let key = line.and_then(|line| line.split('"').nth(1)).expect("each frame has a line");
        assert_eq!(key.len(), 5);
        plain = plain.replace(key, &format!("KEY-{function}"));
    }
    // The lines of frames stand in the order of the real keys.
    let mut lines: Vec<&str> = plain.lines().collect();
    let start = lines.iter().position(|line| line.contains("\"frames\"")).expect("it has frames") + 1;
    let mut frames: Vec<String> =
        lines.drain(start..start + 4).map(|line| line.trim_end_matches(',').to_owned()).collect();
    frames.sort();
    let frames = frames.join(",\n");
    lines.insert(start, &frames);
    format!("{}\n", lines.join("\n"))
}

#[test]
fn the_file_byte_for_byte() {
    assert_eq!(with_plain_keys(&sample().to_text()), TEXT);
}

#[test]
fn written_files_are_parsed_unchanged() {
    let baseline = sample();
    assert_eq!(Baseline::from_text(&baseline.to_text(), "b.json"), Ok(baseline));
    let plain = Baseline::from_text(TEXT, "b.json").expect("keys may be any text");
    assert_eq!(plain, sample());
}

#[test]
fn a_changed_site_changes_one_line() {
    let before = sample();
    let mut after = before.clone();
    after.sites[0].metrics.allocations += 1;
    let (before, after) = (before.to_text(), after.to_text());
    let changed = before.lines().zip(after.lines()).filter(|(a, b)| a != b).count();
    assert_eq!((changed, before.lines().count()), (1, after.lines().count()));
}

#[test]
fn a_new_frame_leaves_the_keys_of_the_others() {
    let lines = |sites: Vec<Site>| {
        let text = baseline(&of_runs(None, vec![run(sites)])).to_text();
        text.lines()
            .filter(|line| line.contains("\"function\""))
            .map(|l| l.trim_end_matches(',').to_owned())
            .collect::<Vec<_>>()
    };
    let before = lines(vec![site("encode", 40, 1000, 0)]);
    let after = lines(vec![site("encode", 40, 1000, 0), site("aaa", 1, 1, 0)]);
    assert_eq!(after.len(), before.len() + 1);
    assert!(before.iter().all(|line| after.contains(line)));
}

#[test]
fn the_judged_run_is_kept() {
    let runs: Vec<Run> = [7, 5, 9].into_iter().map(|count| run(vec![site("f", 1, count, 0)])).collect();
    let baseline = baseline(&of_runs(None, runs));
    assert_eq!(baseline.sites[0].metrics.allocations, 5);
    let spread = baseline.spread(Metric::Allocations).unwrap();
    assert_eq!((spread.min, spread.max, spread.runs), (5, 9, 3));
    assert_eq!(Baseline::of(&of_runs(None, Vec::new()), &Machine::default()), None);
}

#[test]
fn the_largest_sites_are_kept_and_what_leaks_before_them() {
    let mut sites: Vec<Site> = (0..300).map(|line| site("f", line + 1, 1000 + u64::from(line), 0)).collect();
    sites.push(site("leak", 1, 1, 1));
    let baseline = baseline(&of_runs(None, vec![run(sites)]));
    assert_eq!(baseline.sites.len(), SITES_MAX);
    let least = baseline.sites.iter().filter(|site| site.frames[0].function == "f");
    assert_eq!(least.map(|site| site.metrics.allocations).min(), Some(1101));
    assert!(baseline.sites.iter().any(|site| site.frames[0].function == "leak"));
    let left_out: u64 = (0..101).map(|line| 1000 + line).sum();
    assert_eq!(baseline.left_out, LeftOut { sites: 101, allocations: left_out });
    assert_eq!(Baseline::from_text(&baseline.to_text(), "b.json"), Ok(baseline));
}

#[test]
fn two_hundred_stacks_of_an_interpreter_are_small() {
    let sites = (0..200u32).map(|index| {
        // Each stack has ten frames of its own; the fifty outside of them it shares with nineteen others.
        let frames = (0..60u32).map(|depth| {
            let number = if depth < 10 { index * 7 + depth * 13 } else { index / 20 * 31 + depth };
            let number = number % 400;
            frame(&format!("module{}.function_{number}", number % 40), "lib/python3.11/module.py", number)
        });
        let metrics = Metrics { allocations: 1000 + u64::from(index), bytes: 64_000, ..Metrics::default() };
        Site { frames: frames.collect(), metrics }
    });
    let text = baseline(&of_runs(Some(1000), vec![run(sites.collect())])).to_text();
    assert!((40_000..100_000).contains(&text.len()), "{}", text.len());
}

#[test]
fn very_deep_stacks_keep_their_ends() {
    let frames: Vec<Frame> = (0..1000).map(|line| frame("f", "f.c", line)).collect();
    let kept = kept_stack(&frames);
    let lines: Vec<Option<u32>> = kept.iter().map(|frame| frame.line).collect();
    assert_eq!(
        (lines.len(), lines[0], lines[191], lines[192], lines[255]),
        (256, Some(0), Some(191), Some(936), Some(999))
    );
}

#[test]
fn damaged_files_are_one_sentence_with_the_place() {
    let cases = [
        ("", "b.json is not a baseline: EOF while parsing a value (line 1, column 0)."),
        ("{}", "b.json is not a baseline: it does not say `\"schema\": \"mallow.baseline/1\"`."),
        (
            "{\"schema\": \"mallow.baseline/9\"}",
            "b.json is not a baseline: its schema is \"mallow.baseline/9\", and this mallow reads \"mallow.baseline/1\".",
        ),
        (
            "{\n  \"schema\": \"mallow.baseline/1\"\n}",
            "b.json is not a baseline: missing field `environment` (line 3, column 1).",
        ),
        ("{\n<<<<<<< HEAD\n", "b.json is not a baseline: key must be a string (line 2, column 1)."),
    ];
    for (text, sentence) in cases {
        let error = Baseline::from_text(text, "b.json").map_err(|error| error.to_string());
        assert_eq!(error, Err(sentence.to_owned()), "{text:?}");
    }
    let replaced = [
        ("\"min\":1003", "\"min\":2000", "its metrics of allocations contradict each other"),
        ("\"at_min\":10", "\"at_min\":11", "its metrics of allocations contradict each other"),
        ("\"outer\":1", "\"outer\":3", "site 2 shares 3 frames with the one before, which has 2"),
        ("KEY-grow KEY", "KEY-none KEY", "site 2 names the frame \"KEY-none\", which is not there"),
        ("\"ops\": 1000", "\"ops\": -1", "invalid value: integer `-1`, expected u64 (line 19, column 11)"),
    ];
    for (from, to, what) in replaced {
        let text = TEXT.replacen(from, to, 1);
        let error = Baseline::from_text(&text, "b.json").map_err(|error| error.to_string());
        assert_eq!(error, Err(format!("b.json is not a baseline: {what}.")), "{to}");
    }
}

#[test]
fn a_small_file_does_not_become_much_memory() {
    let stack = "KEY-main ".repeat(257);
    let deep = TEXT.replace("KEY-encode KEY-main", stack.trim_end());
    let error = Baseline::from_text(&deep, "b.json").map_err(|error| error.to_string());
    assert_eq!(error, Err("b.json is not a baseline: site 1 has more than 256 frames.".to_owned()));
    let line = "    {\"allocations\":1000,\"bytes\":16000,\"stack\":\"KEY-encode KEY-main\"},\n";
    let many = TEXT.replace(line, &line.repeat(1000));
    let error = Baseline::from_text(&many, "b.json").map_err(|error| error.to_string());
    assert_eq!(
        error,
        Err("b.json is not a baseline: it has 1001 sites, and at most 1000 are read.".to_owned())
    );
}

fn any_frame() -> impl Strategy<Value = Frame> {
    let file = prop::option::of("[a-c]{1,2}(/[a-c]{1,2}){0,3}");
    let module = prop::option::of("(/[a-c]{1,2}){1,2}");
    ("\\PC{0,6}|[a-c](\\+0x1f)?", file, prop::option::of(0u32..9), module, any::<bool>()).prop_map(
        |(function, file, line, module, inlined)| Frame {
            function,
            file,
            line,
            module,
            inlined,
            ..Frame::default()
        },
    )
}

fn any_sites() -> impl Strategy<Value = Vec<Site>> {
    let metrics =
        (any::<u64>(), any::<u64>(), 0u64..3, any::<u64>(), 0u64..3).prop_map(|(a, b, c, d, e)| Metrics {
            allocations: a,
            bytes: b,
            peak_bytes: 0,
            remaining_blocks: c,
            remaining_bytes: d,
            descriptors: e,
            temporary: None,
        });
    let site = (prop::collection::vec(any_frame(), 0..6), metrics)
        .prop_map(|(frames, metrics)| Site { frames, metrics });
    prop::collection::vec(site, 0..12)
}

#[test]
fn temporaries_come_back_and_an_older_file_has_none() {
    let mut encode = site("encode", 40, 1000, 0);
    encode.metrics.temporary = Some(3);
    let with =
        Baseline::of(&of_runs(None, vec![run(vec![encode]); 10]), &Machine::default()).expect("it has runs");
    let text = with.to_text();
    assert!(text.contains("    \"temporary\": {\"at_min\":10,\"max\":3,\"min\":3,\"mode\":3}\n"), "{text}");
    assert!(text.contains(",\"temporary\":3}\n"), "{text}");
    assert_eq!(Baseline::from_text(&text, "a.json"), Ok(with));
    assert_eq!(sample().spread(Metric::Temporary), None);
    let old = Baseline::from_text(&sample().to_text(), "a.json").expect("it is a baseline");
    assert!(old.sites.iter().all(|site| site.metrics.temporary.is_none()));
}

proptest! {
    #[test]
    fn any_baseline_comes_back(name in "\\PC{0,10}", ops in prop::option::of(any::<u64>()), sites in any_sites()) {
        let mut measurement = of_runs(ops, vec![Run { sites, ..Run::default() }]);
        measurement.name = name;
        let baseline = baseline(&measurement);
        prop_assert_eq!(Baseline::from_text(&baseline.to_text(), "b.json"), Ok(baseline));
    }

    #[test]
    fn no_damage_makes_it_panic(at in 0usize..2000, with in "\\PC{0,3}", cut in any::<bool>()) {
        let at = at.min(TEXT.len());
        let rest = if cut { "" } else { TEXT.get(at + 1..).unwrap_or("") };
        let text = format!("{}{with}{rest}", &TEXT[..at]);
        if let Err(error) = Baseline::from_text(&text, "b.json") {
            let sentence = error.to_string();
            prop_assert!(sentence.starts_with("b.json is not a baseline: ") && sentence.ends_with('.'), "{}", sentence);
        }
    }
}

#[test]
fn sums_of_a_table_are_those_of_the_run() {
    let now = measurement(Some(10), &[(50, 1); 3]);
    let sum: u64 = baseline(&now).sites.iter().map(|site| site.metrics.allocations).sum();
    assert_eq!(sum, 50);
    assert_eq!(baseline(&counts(None, &[5])).ops, None);
}
