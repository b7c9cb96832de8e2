//! Folded stacks, exactly as they are written.

use super::*;
use crate::Measure;
use crate::example::{allocated, frame, profile, site};
use mallow_base::Frame;
use mallow_profile::{Process, Profile};

fn texts(rows: &[impl ToString]) -> Vec<String> {
    rows.iter().map(ToString::to_string).collect()
}

fn of(profile: &Profile, shown: FrameVisibility) -> Vec<String> {
    texts(&folded(profile, shown, &Filter::default(), Measure::Bytes))
}

fn calls(functions: &[&str]) -> Vec<Vec<Frame>> {
    functions.iter().map(|function| vec![frame(function, "/bin/app")]).collect()
}

#[test]
fn the_outermost_call_comes_first_and_inlined_calls_stand_in_their_place() {
    let mut profile = profile();
    profile.processes[0].command = "/usr/bin/app --rows 3".into();
    let inlined = vec![
        Frame { inlined: true, ..frame("inner(int)", "/bin/app") },
        Frame { inlined: true, ..frame("middle", "/bin/app") },
        frame("outer", "/bin/app"),
    ];
    site(&mut profile, 0, &[inlined, vec![frame("main", "/bin/app")]], allocated(1, 8));
    assert_eq!(of(&profile, FrameVisibility::WithoutPlumbing), ["app;main;outer;middle;inner 8"]);
    assert_eq!(of(&profile, FrameVisibility::All), ["app;main;outer;middle;inner(int) 8"]);
}

#[test]
fn plumbing_and_the_start_are_hidden_and_equal_stacks_become_one() {
    let mut profile = profile();
    let stack = |leaf| calls(&[leaf, "load", "main", "__libc_start_main", "_start"]);
    site(&mut profile, 0, &stack("malloc"), allocated(1, 8));
    site(&mut profile, 0, &stack("operator new(unsigned long)"), allocated(1, 4));
    assert_eq!(of(&profile, FrameVisibility::WithoutPlumbing), ["main;load 12"]);
    assert_eq!(
        of(&profile, FrameVisibility::All),
        [
            "_start;__libc_start_main;main;load;malloc 8",
            "_start;__libc_start_main;main;load;operator new(unsigned long) 4"
        ]
    );
}

#[test]
fn lines_of_one_function_are_one_box_and_recursion_is_not() {
    let mut profile = profile();
    for line in [3, 4] {
        let leaf = Frame { file: Some("a.c".into()), line: Some(line), ..frame("work", "/bin/app") };
        let walk = vec![frame("walk", "/bin/app")];
        site(&mut profile, 0, &[vec![leaf], walk.clone(), walk], allocated(1, 5));
    }
    assert_eq!(of(&profile, FrameVisibility::WithoutPlumbing), ["walk;walk;work 10"]);
}

#[test]
fn names_cannot_break_their_line() {
    let mut profile = profile();
    let nameless =
        Frame { module: Some("/usr/lib/libz.so.1".into()), function: "0x1f30".into(), ..Frame::default() };
    let odd = Frame { function: "odd\nname;\u{1}x".into(), ..Frame::default() };
    site(&mut profile, 0, &[vec![nameless], vec![odd], vec![Frame::default()]], allocated(1, 2));
    assert_eq!(of(&profile, FrameVisibility::WithoutPlumbing), ["[unknown];odd name: x;[libz.so.1] 2"]);
    assert_eq!(of(&profile, FrameVisibility::All), ["[unknown];odd name: x;0x1f30 [libz.so.1] 2"]);
}

#[test]
fn processes_are_roots_by_their_program() {
    let mut profile = profile();
    profile.recording.command = vec!["/bin/make".into()];
    for command in ["/usr/bin/cc -c a.c", "cc -c b.c"] {
        profile.processes.push(Process { command: command.into(), ..Process::default() });
    }
    for process in 0..3 {
        site(&mut profile, process, &calls(&["main"]), allocated(1, 10));
    }
    site(&mut profile, 2, &[], allocated(1, 7));
    assert_eq!(
        of(&profile, FrameVisibility::WithoutPlumbing),
        ["cc;(no stack was taken) 7", "cc;main 20", "make;main 10"]
    );
}

#[test]
fn stacks_where_the_metric_is_zero_are_omitted_and_filters_apply() {
    let mut profile = profile();
    site(&mut profile, 0, &calls(&["empty", "main"]), allocated(1, 0));
    site(&mut profile, 0, &calls(&["load", "main"]), allocated(1, 3));
    site(&mut profile, 0, &calls(&["save", "main"]), allocated(1, 4));
    assert_eq!(of(&profile, FrameVisibility::WithoutPlumbing), ["main;load 3", "main;save 4"]);
    let filter = Filter { function: Some("sav".into()), ..Filter::default() };
    let rows = folded(&profile, FrameVisibility::WithoutPlumbing, &filter, Measure::Allocations);
    assert_eq!(texts(&rows), ["main;save 1"]);
}

fn borrowed(side: &[(String, u64)]) -> Vec<(&str, u64)> {
    side.iter().map(|(names, count)| (names.as_str(), *count)).collect()
}

/// Profiles of one process each, by stacks innermost first.
fn sides(before: &[(&str, u64)], after: &[(&str, u64)]) -> [Profile; 2] {
    let made = |program: &str, stacks: &[(&str, u64)]| {
        let mut profile = profile();
        profile.processes[0].command = program.to_owned();
        for (stack, count) in stacks {
            let frames: Vec<Vec<Frame>> = stack
                .split(' ')
                .map(|name| {
                    let (name, inlined) = name.strip_suffix('^').map_or((name, false), |name| (name, true));
                    vec![Frame { inlined, ..frame(name, "/bin/app") }]
                })
                .collect();
            site(&mut profile, 0, &frames, allocated(*count, count * 10));
        }
        profile
    };
    [made("/v1/app", before), made("/v2/app-2", after)]
}

fn matched(before: &[(&str, u64)], after: &[(&str, u64)]) -> Vec<String> {
    let [before, after] = sides(before, after);
    let shown = FrameVisibility::WithoutPlumbing;
    texts(&compared([&before, &after], shown, &Filter::default(), Measure::Allocations))
}

#[test]
fn two_profiles_stand_beside_each_other() {
    let before = [("gone a main", 1), ("kept a main", 2)];
    let after = [("kept a main", 5), ("new a main", 600), ("b main", 70)];
    assert_eq!(
        matched(&before, &after),
        ["app-2;main;a;gone 1 0", "app-2;main;a;kept 2 5", "app-2;main;a;new 0 600", "app-2;main;b 0 70"]
    );
    assert_eq!(matched(&before, &[]), ["app;main;a;gone 1 0", "app;main;a;kept 2 0"]);
    assert_eq!(matched(&[], &[]), [""; 0]);
}

#[test]
fn renamed_moved_or_inlined_functions_are_not_new() {
    let before = [
        ("read.isra.0 load main", 100),
        ("parse load main", 50),
        ("intern load main", 30),
        ("trim load main", 3),
        ("copy split_at^ read.isra.0 load main", 4),
    ];
    // `load` is `fetch`, with one more call around some of it; the compiler made another choice about `split_at`.
    let after = [
        ("read fetch main", 100),
        ("parse checked fetch main", 55),
        ("intern fetch main", 30),
        ("copy read fetch main", 4),
    ];
    assert_eq!(
        matched(&before, &after),
        [
            "app-2;main;fetch;checked;parse 50 55",
            "app-2;main;fetch;intern 30 30",
            "app-2;main;fetch;read 100 100",
            "app-2;main;fetch;read;copy 4 4",
            // What is gone stands where it would stand now.
            "app-2;main;fetch;trim 3 0",
        ]
    );
}

#[test]
fn split_stacks_keep_their_sum() {
    let before = [("grow push main", 1000)];
    let after = [("grow push main", 600), ("grow reserve push main", 401)];
    assert_eq!(
        matched(&before, &after),
        ["app-2;main;push;grow 600 600", "app-2;main;push;reserve;grow 400 401"]
    );
}

#[test]
fn a_stack_is_compared_if_either_side_is_wanted() {
    let [before, after] = sides(
        &[("a load main", 9), ("b load main", 8), ("c main", 1)],
        &[("a fetch main", 9), ("b fetch main", 9), ("c main", 1)],
    );
    let filter = Filter { function: Some("load".into()), ..Filter::default() };
    let rows = compared([&before, &after], FrameVisibility::WithoutPlumbing, &filter, Measure::Allocations);
    assert_eq!(texts(&rows), ["app-2;main;fetch;a 9 9", "app-2;main;fetch;b 8 9"]);
}

proptest::proptest! {
    #[test]
    fn both_sums_are_those_of_the_profiles(
        before in proptest::collection::vec(("[a-d]( [a-e]){0,4}", 0..50_u64), 0..12),
        after in proptest::collection::vec(("[a-d]( [a-e]){0,4}", 0..50_u64), 0..12),
    ) {
        let given = |side: &[(String, u64)]| -> u64 { side.iter().map(|(_, count)| count).sum() };
        let (sum_before, sum_after) = (given(&before), given(&after));
        let [before, after] = sides(&borrowed(&before), &borrowed(&after));
        let rows = compared([&before, &after], FrameVisibility::All, &Filter::default(), Measure::Allocations);
        proptest::prop_assert_eq!(rows.iter().map(|row| row.before).sum::<u64>(), sum_before);
        proptest::prop_assert_eq!(rows.iter().map(|row| row.after).sum::<u64>(), sum_after);
        let flames = crate::compared_flames(
            [&before, &after],
            crate::FlameOptions { shown: FrameVisibility::All, filter: &Filter::default(), folds_recursion: true },
            Measure::Allocations,
        );
        proptest::prop_assert_eq!((flames.sum().before, flames.sum().after), (sum_before, sum_after));
    }
}
