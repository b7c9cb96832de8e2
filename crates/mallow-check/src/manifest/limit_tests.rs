//! Limits and tolerances: what is read, and what is refused.

use super::tests::{parse, said, said_of_test};

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
        assert_eq!(said_of_test(&format!("limit.bytes = {limit}")), format!("line 4, column 15: {sentence}"));
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
