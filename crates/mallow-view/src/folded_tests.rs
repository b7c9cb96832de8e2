//! Folded stacks, exactly as they are written.

use super::*;
use crate::Measure;
use crate::example::{allocated, frame, profile, site};
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
fn what_has_nothing_of_the_metric_is_left_out_and_filters_hold() {
    let mut profile = profile();
    site(&mut profile, 0, &calls(&["empty", "main"]), allocated(1, 0));
    site(&mut profile, 0, &calls(&["load", "main"]), allocated(1, 3));
    site(&mut profile, 0, &calls(&["save", "main"]), allocated(1, 4));
    assert_eq!(of(&profile, FrameVisibility::WithoutPlumbing), ["main;load 3", "main;save 4"]);
    let filter = Filter { function: Some("sav".into()), module: None, domain: None };
    let rows = folded(&profile, FrameVisibility::WithoutPlumbing, &filter, Measure::Allocations);
    assert_eq!(texts(&rows), ["main;save 1"]);
}

#[test]
fn two_profiles_stand_beside_each_other() {
    let rows = |texts: &[(&str, u64)]| -> Vec<FoldedRow> {
        let row = |(names, value): &(&str, u64)| FoldedRow {
            calls: names
                .split(';')
                .map(|name| FoldedCall { name: name.into(), language: Language::Native })
                .collect(),
            value: *value,
        };
        texts.iter().map(row).collect()
    };
    let before = rows(&[("a;gone", 1), ("a;kept", 2)]);
    let after = rows(&[("a;kept", 5), ("a;new", 6), ("b", 7)]);
    assert_eq!(texts(&compared(&before, &after)), ["a;gone 1 0", "a;kept 2 5", "a;new 0 6", "b 0 7"]);
    assert_eq!(texts(&compared(&before, &[])), ["a;gone 1 0", "a;kept 2 0"]);
    assert_eq!(texts(&compared(&[], &[])), [""; 0]);
}
