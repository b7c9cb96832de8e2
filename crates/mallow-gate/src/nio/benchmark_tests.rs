//! Whose file is whose, and each form of a limit.

use super::*;
use crate::limit::Combine;

fn limits(files: &[(&str, &str)]) -> BenchmarkLimits {
    let mut limits = BenchmarkLimits::default();
    for (name, text) in files {
        limits.add(name, text, name).unwrap();
    }
    limits
}

fn ends(text: &str, tolerance: Option<Tolerance>) -> (u64, u64) {
    let file = format!("{{\"mallocCountTotal\": {text}}}");
    match limits(&[("T.b.p90.json", &file)]).of(&["b"], tolerance)[..] {
        [(Metric::Allocations, Limit::Absolute { min: Some(min), max: Some(max) })] => (min, max),
        ref other => panic!("{other:?}"),
    }
}

#[test]
fn a_number_is_exact_but_for_the_suites_tolerance() {
    assert_eq!(ends("608", None), (608, 608));
    let tolerance = Tolerance { abs: Some(50), rel_ppm: None, combine: Combine::And };
    assert_eq!(ends("608", Some(tolerance)), (558, 658));
    assert_eq!(ends("{\"min\": 1, \"max\": 9}", Some(tolerance)), (1, 9));
}

#[test]
fn ranges_and_shares_hold_both() {
    assert_eq!(ends("{\"min\": 90, \"max\": 110}", None), (90, 110));
    assert_eq!(ends("{\"base\": 115, \"tolerancePercentage\": 5.5}", None), (109, 121));
    let both = "{\"base\": 115, \"tolerancePercentage\": 4.5, \"min\": 112, \"max\": 130}";
    assert_eq!(ends(both, None), (112, 120));
}

#[test]
fn every_metric_of_ours_has_its_limit_and_others_are_named() {
    let text = "{\"mallocCountTotal\": 1, \"mallocBytesCount\": 2, \"mallocFreeDelta\": 3, \"memoryLeakedBytes\": 4, \
                \"peakMemoryResident\": 5, \"wallClock\": 6, \"syscalls\": 7}";
    let limits = limits(&[("T.b.p90.json", text)]);
    let found: Vec<Metric> = limits.of(&["b"], None).into_iter().map(|(metric, _)| metric).collect();
    let expected = [Metric::Bytes, Metric::Allocations, Metric::Remaining, Metric::RemainingBytes];
    assert_eq!(found, expected);
    assert_eq!(limits.others().collect::<Vec<_>>(), ["peakMemoryResident", "syscalls", "wallClock"]);
}

#[test]
fn a_benchmark_is_found_by_its_whole_name_or_where_it_is_the_only_one() {
    let limits = limits(&[
        ("One.echo.p90.json", "{\"mallocCountTotal\": 1}"),
        ("Two.echo.p90.json", "{\"mallocCountTotal\": 2}"),
        ("One.MTELG.scheduleTask(in:_:).p90.json", "{\"mallocCountTotal\": 3}"),
        ("One.jump and back.p90.json", "{\"mallocCountTotal\": 4}"),
    ]);
    let max = |names: &[&str]| match limits.of(names, None)[..] {
        [(_, Limit::Absolute { max, .. })] => max,
        _ => None,
    };
    assert_eq!(max(&["Two.echo"]), Some(2));
    assert_eq!(max(&["echo"]), None, "of which target?");
    assert_eq!(max(&["echo", "One.echo"]), Some(1));
    assert_eq!(max(&["MTELG.scheduleTask(in:_:)"]), Some(3));
    assert_eq!(max(&["jump_and_back"]), Some(4));
    assert_eq!(max(&["nobody"]), None);
}

#[test]
fn a_syntax_error_has_its_position() {
    let refused =
        |text: &str| BenchmarkLimits::default().add("T.b.p90.json", text, "T.b.p90.json").unwrap_err().0;
    assert!(refused("[1]").starts_with("T.b.p90.json is not a file of thresholds: "));
    assert!(refused("{\n\"mallocCountTotal\": }").contains("line 2"));
    for text in [
        "-1",
        "\"many\"",
        "[1]",
        "{\"min\": 1}",
        "{\"min\": 2, \"max\": 1}",
        "{\"base\": 1}",
        "{\"base\": 1, \"tolerancePercentage\": 0}",
        "{}",
    ] {
        let file = format!("{{\"mallocCountTotal\": {text}}}");
        assert!(
            refused(&file).contains("the limit of \"mallocCountTotal\" is neither a whole number"),
            "{text}"
        );
    }
}
