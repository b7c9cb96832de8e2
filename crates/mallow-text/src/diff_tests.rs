//! The report as it is shown.

use super::*;
use insta::assert_snapshot;
use mallow_profile::{Availability, Profile};
use mallow_samples::diff::{Asked, Made, asked as request, profile, tables, with_report};
use mallow_view::FrameVisibility;
use mallow_view::Measure;
use mallow_view::diff::DiffOptions;
use mallow_view::diff::Verdict;

#[track_caller]
fn text(profiles: &[Profile; 2], request: &Asked) -> String {
    let text = with_report(profiles, request, |diff| super::text(diff, Style::PLAIN));
    if request.options.shown != FrameVisibility::All {
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
    assert!(text.lines().all(|line| line.trim_end() == line), "{text}");
    text
}

#[test]
fn by_allocations() {
    assert_snapshot!(text(&tables(), &request(DiffOptions::default())));
}

#[test]
fn by_leaked_per_row() {
    let per = NonZeroU64::new(37_449).unwrap_or(NonZeroU64::MIN);
    let options = DiffOptions { by: Measure::Leaked, ..DiffOptions::default() };
    assert_snapshot!(text(&tables(), &Asked { per, ..request(options) }));
}

#[test]
fn with_a_filter_and_a_limit() {
    let options =
        DiffOptions { by: Measure::Bytes, filter: "row".parse().ok(), min: 1000, ..DiffOptions::default() };
    assert_snapshot!(text(&tables(), &Asked { limit: Some(1), ..request(options) }));
}

#[test]
fn nothing_differs() {
    let [before, _] = tables();
    assert_snapshot!(text(&[before.clone(), before], &request(DiffOptions::default())));
}

/// What is not shown is summed by the same metric as the rows above it.
#[test]
fn moved_sites_beyond_the_limit_keep_their_metric() {
    let stacks = |file: &str| -> Vec<String> {
        (0..15).map(|at| format!("f{at}@{file}:{} main@m.c:1", at + 1)).collect()
    };
    let [before, after] = [stacks("old.c"), stacks("new.c")].map(|stacks| {
        let sites: Vec<Made<'_>> = stacks.iter().map(|stack| (stack.as_str(), 20, 40, false)).collect();
        profile("a", Availability::ALL, &sites)
    });
    let text = text(&[before, after], &request(DiffOptions::default()));
    assert!(text.contains("moved: 300 allocations at 15 sites, no difference\n"), "{text}");
    assert!(
        text.contains("\n5 more sites with 100 allocations, no difference; --top shows more\n"),
        "{text}"
    );
}

#[test]
fn only_another_metric_differs() {
    let before = profile("a", Availability::ALL, &[("x@a.c:1", 5, 10, false)]);
    let after = profile("a", Availability::ALL, &[("x@a.c:1", 5, 12, false)]);
    let text = text(&[before, after], &request(DiffOptions::default()));
    assert!(text.contains("\nNo site differs in allocations.\nOther metrics differ (bytes, peak); use --metric bytes to see where.\n"), "{text}");
}

#[test]
fn what_a_file_does_not_tell_is_said() {
    let known = Availability { allocations: true, leaked: true, ..Availability::NOTHING };
    let before = profile("a", known, &[("x@a.c:1", 5, 10, false)]);
    let after =
        profile("a", Availability { leaked: false, peak: true, ..known }, &[("x@a.c:1", 5, 10, false)]);
    let text = text(&[before, after], &request(DiffOptions::default()));
    assert!(text.contains("\nLeft out, because before.mallow does not contain: peak.\nLeft out, because after.mallow does not contain: leaked.\nLeft out, because neither file contains: bytes, temporary.\n"), "{text}");
}

#[test]
fn markdown_for_a_comment() {
    let fail_on = vec![
        "allocations>+1%".parse().unwrap_or_else(|error| panic!("{error}")),
        "leaked>0".parse().unwrap_or_else(|error| panic!("{error}")),
    ];
    let request = Asked { fail_on, ..request(DiffOptions::default()) };
    assert_snapshot!(with_report(&tables(), &request, markdown));
}

#[test]
fn markdown_fits_into_a_comment() {
    let stacks: Vec<String> =
        (0..3000).map(|at| format!("{}_{at}@a<b>.c:{at} main@m.c:1", "f&".repeat(40))).collect();
    let sites: Vec<Made<'_>> = stacks.iter().map(|stack| (stack.as_str(), 1, 1, false)).collect();
    let profiles = [profile("a", Availability::ALL, &[]), profile("a", Availability::ALL, &sites)];
    let all = Asked { limit: Some(usize::MAX), ..request(DiffOptions::default()) };
    let text = with_report(&profiles, &all, markdown);
    assert!((50_000..65_000).contains(&text.len()), "{}", text.len());
    assert!(text.contains("more sites with +"), "{}", &text[text.len() - 200..]);
    assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
    assert!(!text.contains("a<b>.c</"), "names are escaped");
}

#[test]
fn differences_have_signs_and_shares() {
    let one = NonZeroU64::MIN;
    let thousand = NonZeroU64::new(1000).unwrap_or(one);
    assert_eq!(signed(Measure::Allocations, 1000, one), "+1,000");
    assert_eq!(signed(Measure::Allocations, -1000, thousand), "-1.000");
    assert_eq!(signed(Measure::Allocations, 21_500, thousand), "+21.500");
    assert_eq!(signed(Measure::Bytes, -2048, one), "-2.00 KiB");
    assert_eq!(signed(Measure::Bytes, 1500, thousand), "+1.500 B");
    assert_eq!(signed(Measure::Bytes, 0, one), "0");
    for (before, after, text) in [
        (100, 101, "+1.0%"),
        (1000, 1, "-99.9%"),
        (10_000, 10_005, "+0.05%"),
        (1_000_000, 1_000_001, "+<0.01%"),
        (1, 500, "× 500"),
        (0, 5, ""),
        (5, 5, ""),
    ] {
        assert_eq!(percent(Change { before, after }), text);
    }
}

#[test]
fn a_broken_limit_is_a_sentence() {
    let limit = || "allocations>+1%".parse().unwrap_or_else(|error| panic!("{error}"));
    let change = Change { before: 1000, after: 1500 };
    let verdict: Verdict = Verdict { limit: limit(), change, is_broken: Some(true) };
    assert_eq!(
        broken(&verdict, NonZeroU64::MIN),
        "the limit allocations>+1% is broken: 1,000 before, 1,500 after, +500, +50.0%."
    );
    assert_eq!(
        broken(&verdict, NonZeroU64::new(100).unwrap_or(NonZeroU64::MIN)),
        "the limit allocations>+1% is broken: 10.000 before, 15.000 after, +5.000, +50.0%, per operation."
    );
}
