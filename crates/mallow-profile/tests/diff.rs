//! Refactorings that must not look like changes, one by one and at random.

use mallow_base::{Frame, Language};
use mallow_profile::{Diff, DiffEntry, DiffSite, Level, SiteTotals};
use mallow_stacks::totals_of;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Deref;

/// A site as it is written here: frames leaf first, allocations, bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Made {
    frames: Vec<Frame>,
    allocations: u64,
    bytes: u64,
}

/// `function@line`, in the file of the function's first letter; `function^@line` was inlined.
fn frame(text: &str) -> Frame {
    let (function, line) = text.split_once('@').unwrap_or((text, ""));
    let name = function.trim_end_matches('^');
    Frame {
        function: name.to_owned(),
        file: Some(format!("/build/one/src/{}.c", &name[..1])),
        line: line.parse().ok(),
        module: Some("/usr/bin/app".to_owned()),
        inlined: function.ends_with('^'),
        ..Frame::default()
    }
}

fn made(stack: &str, allocations: u64) -> Made {
    Made { frames: stack.split(' ').map(frame).collect(), allocations, bytes: allocations * 16 }
}

/// What changed, and by how many allocations each entry differs.
#[derive(Debug, PartialEq)]
struct Compared {
    diff: Diff,
    differences: Vec<i128>,
}

impl Deref for Compared {
    type Target = Diff;

    fn deref(&self) -> &Diff {
        &self.diff
    }
}

fn compared_sites(before: &Vec<DiffSite<'_>>, after: &Vec<DiffSite<'_>>, same: &[&str]) -> Compared {
    let diff = Diff::of(before, after, |_| true, same);
    let allocations =
        |side: &Vec<DiffSite<'_>>, sites: &[usize]| i128::from(totals_of(side, sites).allocations);
    let difference =
        |entry: &DiffEntry| allocations(after, &entry.after) - allocations(before, &entry.before);
    Compared { differences: diff.entries.iter().map(difference).collect(), diff }
}

fn compared(before: &[Made], after: &[Made]) -> Compared {
    compared_with(before, after, &[])
}

/// With the paths of the files that are the very same on both sides.
fn compared_with(before: &[Made], after: &[Made], same: &[&str]) -> Compared {
    fn sites(made: &[Made]) -> Vec<DiffSite<'_>> {
        let totals = |made: &Made| SiteTotals {
            allocations: made.allocations,
            bytes: made.bytes,
            ..SiteTotals::default()
        };
        made.iter()
            .map(|made| DiffSite { frames: made.frames.iter().collect(), totals: totals(made) })
            .collect()
    }
    let diff = compared_sites(&sites(before), &sites(after), same);
    assert_complete(&diff, before.len(), after.len());
    diff
}

/// Every site stands in exactly one entry.
fn assert_complete(diff: &Diff, before: usize, after: usize) {
    let sorted = |indices: Vec<usize>| {
        let mut indices = indices;
        indices.sort_unstable();
        indices
    };
    let seen = sorted(diff.entries.iter().flat_map(|entry| entry.before.clone()).collect());
    assert_eq!(seen, (0..before).collect::<Vec<_>>());
    let seen = sorted(diff.entries.iter().flat_map(|entry| entry.after.clone()).collect());
    assert_eq!(seen, (0..after).collect::<Vec<_>>());
}

/// Level, difference and numbers of sites of each entry.
fn summary(diff: &Compared) -> Vec<(Option<Level>, i128)> {
    let level =
        |entry: &DiffEntry| (!entry.before.is_empty() && !entry.after.is_empty()).then_some(entry.level);
    diff.entries.iter().map(level).zip(diff.differences.iter().copied()).collect()
}

fn of(sites: &[(&str, u64)]) -> Vec<Made> {
    sites.iter().map(|(stack, metric)| made(stack, *metric)).collect()
}

#[track_caller]
fn check(before: &[(&str, u64)], after: &[(&str, u64)], expected: &[(Option<Level>, i128)]) -> Compared {
    let diff = compared(&of(before), &of(after));
    assert_eq!(summary(&diff), expected);
    diff
}

#[test]
fn the_same_is_the_same() {
    let sites = [("a@1 main@2", 5), ("b@1 main@3", 7)];
    check(&sites, &sites, &[(Some(Level::Same), 0), (Some(Level::Same), 0)]);
    check(&[], &[], &[]);
    check(&[("a@1", 5)], &[], &[(None, -5)]);
    check(&[], &[("a@1", 5)], &[(None, 5)]);
}

#[test]
fn lines_move() {
    check(
        &[("a@10 main@2", 100), ("a@20 main@2", 5), ("b@1 main@3", 7)],
        &[("a@20 main@12", 100), ("a@30 main@12", 6), ("b@1 main@3", 7)],
        &[(Some(Level::Lines), 0), (Some(Level::Lines), 1), (Some(Level::Same), 0)],
    );
}

#[test]
fn a_function_is_renamed_on_all_stacks() {
    let before =
        [("a@1 load@4 main@9", 100), ("b@1 load@5 main@9", 50), ("load@6 main@9", 3), ("c@1 main@8", 2)];
    let after =
        [("a@1 fetch@4 main@9", 100), ("b@1 fetch@5 main@9", 80), ("fetch@6 main@9", 3), ("c@1 main@8", 2)];
    let renamed = Some(Level::Renamed);
    let diff = check(&before, &after, &[(renamed, 0), (renamed, 30), (renamed, 0), (Some(Level::Same), 0)]);
    assert_eq!(diff.renames.len(), 1);
    assert_eq!((diff.renames[0].before.as_str(), diff.renames[0].after.as_str()), ("load", "fetch"));
}

/// An inlined function has a short name in one build, and a type got a parameter: neither is new, gone, or renamed.
#[test]
fn a_function_with_two_spellings_is_one() {
    let before =
        [("cow^@7 parse::Parser::span@4 pass^@3 main@9", 60), ("cow^@7 parse::Parser::link@5 main@9", 60)];
    let after = [
        ("parse::Room::cow@9 parse::Parser<F>::span@6 parse::Parser<F>::pass@5 main@9", 65),
        ("parse::Room::cow@9 parse::Parser<F>::link@8 main@9", 60),
    ];
    let files = Some(Level::Files);
    let diff = check(&before, &after, &[(files, 5), (files, 0)]);
    assert_eq!(diff.renames, []);
}

#[test]
fn another_function_is_not_a_renamed_one() {
    let before = [("parse@1 main@9", 100), ("c@1 main@8", 2)];
    let after = [("upload@1 main@9", 90_000), ("c@1 main@8", 2)];
    check(&before, &after, &[(None, -100), (Some(Level::Same), 0), (None, 90_000)]);
}

/// A library that is the very same has the same functions. As much is allocated, but by another function.
#[test]
fn a_function_of_a_library_that_did_not_change_is_no_renamed_one() {
    let mut after = made("getcwd@1 main@9", 100);
    after.frames[0].module = Some("/lib/libc.so.6".to_owned());
    let (before, after) = ([made("insert@1 main@9", 100)], [after]);
    let renames = |same: &[&str]| compared_with(&before, &after, same).renames.len();
    assert_eq!(renames(&["/lib/libc.so.6"]), 0);
    assert_eq!(renames(&[]), 1, "nothing is known of it");
}

/// Nor has one of the standard library become one of the program.
#[test]
fn a_function_of_the_standard_library_is_no_renamed_one_of_the_program() {
    let renames = |one: &str, other: &str| {
        let sites = [one, other].map(|function| [made(&format!("{function}@1 main@9"), 100)]);
        compared(&sites[0], &sites[1]).renames.len()
    };
    assert_eq!(renames("clap::add_index_to", "std::sys::os::getcwd"), 0);
    assert_eq!(renames("std::sync::Once::call_once", "std::sync::Once::call_once_force"), 1);
}

/// A script's functions stand in no file of the interpreter, which is the same one.
#[test]
fn a_function_of_a_script_is_renamed_although_the_interpreter_is_the_same() {
    let script = |function: &str| {
        let mut site = made(&format!("{function}@1 main@9"), 100);
        site.frames[0].language = Language::Python;
        site
    };
    let diff = compared_with(&[script("load")], &[script("fetch")], &["/usr/bin/app"]);
    assert_eq!(diff.renames.len(), 1);
}

#[test]
fn a_function_that_everybody_calls_does_not_make_a_rename() {
    let before = [("strdup@1 config@4 main@9", 100), ("c@1 main@8", 2), ("strdup@1 main@7", 5)];
    let after = [("strdup@1 upload@4 main@9", 90_000), ("c@1 main@8", 2), ("strdup@1 main@7", 5)];
    let same = Some(Level::Same);
    let diff = check(&before, &after, &[(None, -100), (same, 0), (same, 0), (None, 90_000)]);
    assert_eq!(diff.renames, []);
}

#[test]
fn a_split_function_is_compared_by_its_sum() {
    check(
        &[("load@4 main@9", 1000), ("c@1 main@8", 2)],
        &[("load_head@1 load@4 main@9", 400), ("load_rows@3 load@5 main@9", 600), ("c@1 main@8", 2)],
        &[(Some(Level::Frames), 0), (Some(Level::Same), 0)],
    );
    // Part of it stays where it was.
    check(
        &[("load@4 main@9", 1000), ("c@1 main@8", 2)],
        &[("load@4 main@9", 400), ("load_rows@3 load@5 main@9", 600), ("c@1 main@8", 2)],
        &[(Some(Level::Frames), 0), (Some(Level::Same), 0)],
    );
}

#[test]
fn inlining_changes_stacks_and_not_sites() {
    check(
        &[("a^@3 b^@4 load@5 main@9", 10), ("c@1 main@8", 2)],
        &[("load@5 main@9", 10), ("c@1 main@8", 2)],
        &[(Some(Level::Inlining), 0), (Some(Level::Same), 0)],
    );
    check(&[("a^@3 load@5 main@9", 10)], &[("a@3 load@5 main@9", 10)], &[(Some(Level::Lines), 0)]);
}

#[test]
fn a_site_under_another_caller_is_similar() {
    let before =
        [("push@1 parse@2 load@3 main@9", 77), ("x@1 read@4 pool@5 main@8", 2), ("y@1 load@3 main@9", 4)];
    let after = [
        ("push@1 parse@2 read@4 pool@5 main@8", 77),
        ("x@1 read@4 pool@5 main@8", 2),
        ("y@1 load@3 main@9", 4),
    ];
    let diff = check(
        &before,
        &after,
        &[(Some(Level::Similar(62)), 0), (Some(Level::Same), 0), (Some(Level::Same), 0)],
    );
    assert_eq!(diff.renames, []);
}

/// What called it was written anew, so hardly a caller is the same; but it is one function that one other calls.
#[test]
fn a_function_whose_only_caller_was_rewritten_is_the_same() {
    let before = [
        ("push@1 add@2 defaults@3 types@4 parse@5 args@6 main@9", 914),
        ("name@1 add@3 defaults@3 types@4 parse@5 args@6 main@9", 12),
        ("push@8 main@8", 2),
    ];
    let after = [
        ("push@1 add@2 defaults@3 build@4 lower@5 flags@6 run@7 main@9", 1152),
        ("name@1 add@3 defaults@3 build@4 lower@5 flags@6 run@7 main@9", 12),
        ("push@8 main@8", 2),
    ];
    let diff = check(
        &before,
        &after,
        &[(Some(Level::Similar(36)), 238), (Some(Level::Frames), 0), (Some(Level::Same), 0)],
    );
    assert_eq!(diff.renames, []);
}

/// The function around them moved as well, and is on one side only around them.
#[test]
fn the_innermost_function_whose_caller_was_rewritten_counts() {
    let before = [
        ("push@1 add@2 defaults@3 types@4 walk@5 search@6 try_main@7 main@9", 914),
        ("name@1 search@6 try_main@7 main@9", 7_000),
    ];
    let after = [
        ("push@1 add@2 defaults@3 build@4 low@5 main@9", 1152),
        ("name@1 search@6 run@3 start@2 main@9", 7_000),
    ];
    let differences = compared(&of(&before), &of(&after)).differences;
    assert_eq!(differences, [238, 0]);
}

/// As before, but each of these might be another use of the same functions.
#[test]
fn a_function_that_others_call_as_well_is_new_under_a_rewritten_caller() {
    let rewritten = |stack: &str| {
        (
            format!("{stack} types@4 parse@5 args@6 main@9"),
            format!("{stack} build@4 lower@5 flags@6 run@7 main@9"),
        )
    };
    let gone_and_new = |stack: &str, metrics: [u64; 2], both: &[(&str, u64)], only_after: &[(&str, u64)]| {
        let (before, after) = rewritten(stack);
        let before: Vec<_> = [&[(before.as_str(), metrics[0])], both].concat();
        let after: Vec<_> = [&[(after.as_str(), metrics[1])], both, only_after].concat();
        let diff = compared(&of(&before), &of(&after));
        diff.entries.iter().any(|entry| entry.before == [0].into() && entry.after.is_empty())
    };
    // Another caller that is the same, and another one that is not.
    assert!(gone_and_new("push@1 strdup@2", [914, 1152], &[("push@1 strdup@2 main@3", 5)], &[]));
    let log = [("log@7 main@3", 5)];
    assert!(gone_and_new("push@1 strdup@2", [914, 1152], &log, &[("push@1 strdup@2 log@7 main@3", 5)]));
    // One function alone, and functions of the standard library.
    assert!(gone_and_new("strdup@2", [914, 1152], &[], &[]));
    assert!(gone_and_new("alloc::vec::Vec::push@1 strdup@2", [914, 1152], &[], &[]));
    // Something of another size.
    assert!(gone_and_new("push@1 strdup@2", [100, 90_000], &[], &[]));
}

#[test]
fn names_and_places_of_another_build() {
    let mut before = made("load@4 main@9", 10);
    before.frames[0].function = "app[0123456789abcdef]::load::{closure#3}.llvm.77".into();
    let mut after = made("load@4 main@9", 10);
    after.frames[0].function = "app[fedcba9876543210]::load::{closure#1}".into();
    for frame in &mut after.frames {
        frame.file = frame.file.as_ref().map(|file| file.replace("/build/one", "/elsewhere/two"));
        frame.module = Some("/opt/app/bin/app".into());
    }
    let diff = compared(&[before], &[after]);
    assert_eq!(summary(&diff), [(Some(Level::Same), 0)]);
}

#[test]
fn addresses_without_names_are_told_apart_in_their_order() {
    let address = |address: &str, metric| {
        let mut site = made("x main@1", metric);
        site.frames[0] = Frame {
            function: address.into(),
            module: Some("/usr/lib/libz.so.1.2".into()),
            ..Frame::default()
        };
        site
    };
    let mut after = [address("0x1500", 100), address("0x2500", 7)];
    after[0].frames[0].module = Some("/usr/lib/libz.so.1.3".into());
    after[1].frames[0].module = Some("/usr/lib/libz.so.1.3".into());
    let diff = compared(&[address("0x1000", 100), address("0x2000", 7)], &after);
    assert_eq!(summary(&diff), [(Some(Level::Lines), 0), (Some(Level::Lines), 0)]);
}

#[test]
fn addresses_in_the_very_same_library_are_places() {
    let address = |address: &str, metric| {
        let module = Some("/usr/lib/libz.so.1.2".into());
        let mut site = made("x main@1", metric);
        site.frames[0] = Frame { function: address.into(), module, ..Frame::default() };
        site
    };
    let sides = [[address("0x1000", 100)], [address("0x2000", 100)]];
    let [before, after] = sides.each_ref().map(|[made]| {
        let totals = SiteTotals { allocations: made.allocations, ..SiteTotals::default() };
        vec![DiffSite { frames: made.frames.iter().collect(), totals }]
    });
    let levels = |same: &[&str]| summary(&compared_sites(&before, &after, same))[0].0;
    assert_eq!(levels(&[]), Some(Level::Lines));
    assert_eq!(levels(&["/usr/lib/libz.so.1.2"]), Some(Level::Frames), "another place that does the same");
}

/// Random programs: stacks over functions `f0` to `f9`, metrics that differ.
fn program() -> impl Strategy<Value = Vec<Made>> {
    let stack = prop::collection::vec((0..10_usize, 0..4_u32), 1..6);
    prop::collection::vec(stack, 1..16).prop_map(|stacks| {
        let mut sites = BTreeMap::new();
        for (at, stack) in stacks.into_iter().enumerate() {
            let mut frames: Vec<Frame> = stack
                .iter()
                .map(|(function, line)| Frame {
                    // Functions of odd numbers are always inlined.
                    inlined: function % 2 == 1,
                    ..frame(&format!("f{function}@{}", 100 * function + 10 * *line as usize))
                })
                .collect();
            frames.push(frame("main@1"));
            sites.entry(frames).or_insert(17 * at as u64 * at as u64 + 3);
        }
        sites
            .into_iter()
            .map(|(frames, allocations)| Made { frames, allocations, bytes: allocations * 16 })
            .collect()
    })
}

/// A change of the source that changes no allocation.
#[derive(Clone, Copy, Debug)]
enum Refactoring {
    Rename(usize),
    InsertBelow(usize),
    DropInlined,
    Nothing,
}

fn refactoring() -> impl Strategy<Value = Refactoring> {
    prop_oneof![
        (0..10_usize).prop_map(Refactoring::Rename),
        (0..10_usize).prop_map(Refactoring::InsertBelow),
        Just(Refactoring::DropInlined),
        Just(Refactoring::Nothing),
    ]
}

/// The program after a refactoring, with its lines moved, in another folder.
fn refactored(sites: &[Made], refactoring: Refactoring, moved: &[u32]) -> Vec<Made> {
    let mut merged: BTreeMap<Vec<Frame>, (u64, u64)> = BTreeMap::new();
    for site in sites {
        let mut frames = Vec::new();
        for frame in &site.frames {
            if matches!(refactoring, Refactoring::DropInlined) && frame.inlined {
                continue;
            }
            if let Refactoring::InsertBelow(function) = refactoring
                && frame.function == format!("f{function}")
                && !frames.is_empty()
            {
                frames.push(self::frame("wrapped@7"));
            }
            let mut frame = frame.clone();
            let number: usize = frame.function.trim_start_matches('f').parse().unwrap_or(10);
            frame.line = frame.line.map(|line| line + moved[number]);
            frame.file = frame.file.map(|file| file.replace("/build/one", "/srv/two"));
            if matches!(refactoring, Refactoring::Rename(function) if function == number) {
                frame.function = "fresh_name".into();
            }
            frames.push(frame);
        }
        let sum = merged.entry(frames).or_default();
        *sum = (sum.0 + site.allocations, sum.1 + site.bytes);
    }
    merged.into_iter().map(|(frames, (allocations, bytes))| Made { frames, allocations, bytes }).collect()
}

/// Returns whether a site loses inlined calls and then looks as another one always did. That one is matched exactly, as it
/// must be, with more than it had: nobody can tell this from a real change of both.
fn joins_an_unchanged_site(sites: &[Made]) -> bool {
    let without =
        |site: &Made| site.frames.iter().filter(|frame| !frame.inlined).cloned().collect::<Vec<_>>();
    sites.iter().any(|site| {
        let left = without(site);
        left != site.frames && sites.iter().any(|other| other.frames == left)
    })
}

proptest! {
    #[test]
    fn a_refactoring_shows_nothing_but_the_real_change(
        before in program(),
        refactoring in refactoring(),
        moved in prop::collection::vec(0..50_u32, 11),
        below in any::<prop::sample::Index>(),
    ) {
        prop_assume!(!matches!(refactoring, Refactoring::DropInlined) || !joins_an_unchanged_site(&before));
        let mut after = refactored(&before, refactoring, &moved);
        let mut stack = vec![frame("entirely_new@5")];
        stack.extend(below.get(&after).frames.iter().skip(1).cloned());
        after.push(Made { frames: stack, allocations: 1_000_000, bytes: 64_000_000 });
        let diff = compared(&before, &after);
        let differing: Vec<(bool, i128)> = diff
            .entries
            .iter()
            .zip(&diff.differences)
            .filter(|(entry, by)| **by != 0 || entry.before.is_empty() || entry.after.is_empty())
            .map(|(entry, by)| (entry.before.is_empty(), *by))
            .collect();
        prop_assert_eq!(differing, [(true, 1_000_000)], "{:?}", diff);
    }

    #[test]
    fn two_programs_always_compare_completely_and_alike(before in program(), after in program()) {
        prop_assert_eq!(compared(&before, &after), compared(&before, &after));
    }

    #[test]
    fn a_program_is_itself(sites in program()) {
        let diff = compared(&sites, &sites);
        prop_assert!(diff.entries.iter().all(|entry| entry.level == Level::Same));
        prop_assert!(diff.differences.iter().all(|by| *by == 0));
    }
}

/// Two large profiles with hardly more than leaves in common must not take the square of the time. The bound
/// is wide, since tests run without optimisation on busy machines; the square would take minutes.
#[test]
fn twenty_thousand_sites_on_each_side() {
    let pool = |side: &str| -> Vec<Frame> {
        let callers = (0..5000).map(|number| frame(&format!("{side}_{number}@{number}")));
        callers
            .chain((0..100).map(|leaf| frame(&format!("leaf_{leaf}@1"))))
            .chain([frame("main@1")])
            .collect()
    };
    fn sites(pool: &[Frame]) -> Vec<DiffSite<'_>> {
        let site = |at: usize| {
            let callers = (0..30).map(|level| &pool[(at / (level + 1)) * 31 % 997 + level * 100]);
            let frames =
                std::iter::once(&pool[5000 + at % 100]).chain(callers).chain([&pool[5100]]).collect();
            let totals =
                SiteTotals { allocations: at as u64 + 1, bytes: 8 * at as u64, ..SiteTotals::default() };
            DiffSite { frames, totals }
        };
        (0..20_000).map(site).collect()
    }
    let (before, after) = (pool("old"), pool("new"));
    let (before, after) = (sites(&before), sites(&after));
    let started = std::time::Instant::now();
    let diff = Diff::of(&before, &after, |_| true, &[]);
    let took = started.elapsed();
    assert_complete(&diff, 20_000, 20_000);
    assert!(took.as_secs() < 60, "{took:?}");
    eprintln!("20,000 against 20,000 sites: {took:?}");
}
