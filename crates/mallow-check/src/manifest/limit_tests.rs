//! Limits and tolerances: what is read, and what is refused.

use super::tests::{parse, said, said_of_test};
use mallow_gate::limit::Limit;
use mallow_gate::measurement::Metric;

#[test]
fn limits_that_contradict_themselves_are_refused() {
    for (limit, sentence) in [
        ("-5", "a limit cannot be less than 0, and is -5"),
        ("{}", "a limit needs `max`, `min`, `abs` or `rel`"),
        ("{ min = 6, max = 5 }", "`min` is greater than `max`"),
        (
            "{ max = 5, rel = \"1%\" }",
            "`min` and `max` say what is allowed, `abs` and `rel` how far from the baseline; a limit has one or \
             the other",
        ),
        ("{ abs = 1, combine = \"or\" }", "`combine` needs `abs` and `rel`"),
        ("{ max = 1, combine = \"or\" }", "`combine` needs `abs` and `rel`"),
        (
            "\"5\"",
            "here a limit, such as 5, { min = 3, max = 5 } or { abs = 50, rel = \"1%\" } is expected, not \"5\"",
        ),
    ] {
        assert_eq!(
            said_of_test(&format!("limit.remaining = {limit}")),
            format!("line 4, column 19: {sentence}")
        );
    }
    assert_eq!(
        said("[gate]\ntolerance = { max = 5 }\n"),
        "line 2, column 13: a tolerance is a distance from the baseline: it has `abs` and `rel`, not `min` and `max`"
    );
    assert_eq!(
        said("[gate]\ntolerance = { abs = 5, rel = \"1%\", combine = \"xor\" }\n"),
        "line 2, column 46: there is no way to combine \"xor\"; did you mean \"or\"?"
    );
}

#[test]
fn bytes_have_units_and_counts_have_none() {
    let read = |line: &str| parse(&format!("[gate]\nlimit.{line}\n")).unwrap().gate.defaults.limits;
    for (metric, word) in Metric::ALL.map(|metric| (metric, metric.word())) {
        let is_of_bytes = ["bytes", "peak", "peak_rss"].contains(&word) || word.ends_with("_bytes");
        assert_eq!(parse(&format!("[gate]\nlimit.{word} = \"64KiB\"\n")).is_ok(), is_of_bytes, "{word}");
        if is_of_bytes {
            let max = Limit::Absolute { min: None, max: Some(65_536) };
            assert_eq!(read(&format!("{word} = \"64KiB\"")).of(metric), Some(max), "{word}");
        }
    }
    let range = Limit::Absolute { min: Some(1000), max: Some(3 << 29) };
    assert_eq!(read("bytes = { min = \"1kB\", max = \"1.5 GiB\" }").of(Metric::Bytes), Some(range));
    let Some(Limit::Relative(tolerance)) = read("peak = { abs = \"4K\", rel = \"1%\" }").of(Metric::Peak)
    else {
        panic!("no distance")
    };
    assert_eq!((tolerance.abs, tolerance.rel_ppm), (Some(4096), Some(10_000)));
    for (limit, column, sentence) in [
        (
            "\"5 parsec\"",
            15,
            "here a limit, such as 4096, \"64KiB\", { min = \"1MB\", max = \"2MB\" } or { abs = \"4K\", rel = \"1%\" } is \
             expected, not \"5 parsec\"",
        ),
        (
            "{ max = \"64Kb\" }",
            23,
            "here a size, such as \"64KiB\", \"1.5MB\" or a number of bytes from 0 on, is expected, not \"64Kb\"",
        ),
        (
            "{ max = -1 }",
            23,
            "here a size, such as \"64KiB\", \"1.5MB\" or a number of bytes from 0 on, is expected, not -1",
        ),
        ("{ min = \"2K\", max = 5 }", 15, "`min` is greater than `max`"),
    ] {
        let said = said_of_test(&format!("limit.bytes = {limit}"));
        assert_eq!(said, format!("line 4, column {column}: {sentence}"));
    }
}

#[test]
fn a_percentage_is_read_to_a_millionth_and_nothing_else_is_one() {
    let read = |text: &str| {
        let manifest = parse(&format!("[gate]\ntolerance = \"{text}\"\n")).ok()?;
        manifest.gate.defaults.tolerance?.rel_ppm
    };
    let good = [
        ("1%", 10_000),
        ("0.1%", 1000),
        ("0.0001%", 1),
        ("100%", 1_000_000),
        ("250 %", 2_500_000),
        ("1.%", 10_000),
    ];
    for (text, rel_ppm) in good {
        assert_eq!(read(text), Some(rel_ppm), "{text}");
    }
    for text in ["1", "%", ".5%", "-1%", "0.00001%", "1e3%", "1.1.1%", "99999999999999999999%"] {
        assert_eq!(read(text), None, "{text}");
    }
}
