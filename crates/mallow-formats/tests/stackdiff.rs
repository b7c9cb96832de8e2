//! The comparison that SwiftNIO's scripts expect, byte for byte, and compared with a naive implementation.

use mallow_formats::stackdiff::{Counted, aggregation, nio, of_file, of_profile};
use mallow_formats::{Format, read_as};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

fn compared(before: &[Counted], after: &[Counted]) -> String {
    let mut out = Vec::new();
    nio(before, after, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn counted(count: u64, frames: &[&str]) -> Counted {
    Counted { count, frames: frames.iter().map(|frame| frame.as_bytes().to_vec()).collect() }
}

#[test]
fn the_scripts_own_output_comes_out() {
    let (before, _) = of_file(&fixture("dtrace/before.txt")).unwrap();
    let (after, _) = of_file(&fixture("dtrace/after.txt")).unwrap();
    let expected = std::fs::read_to_string(fixture("dtrace/nio.txt")).unwrap();
    assert_eq!(compared(&before, &after), expected);
}

#[test]
fn lines_are_taken_as_the_script_takes_them() {
    let text = b"ignored\n  odd output\n\tignored too\n  lib`f+0x1 \n   \n  7\n  8\r\n  x\n 9\n  cut short";
    let expected = [counted(7, &["odd output", "lib`f+0x1", ""]), counted(9, &["8", "x"])];
    assert_eq!(aggregation(text), expected);
    assert_eq!(aggregation(b"  99999999999999999999\n"), [counted(u64::MAX, &[])]);
    assert_eq!(aggregation(b""), []);
}

#[test]
fn a_stack_without_frames_is_an_empty_line() {
    let expected = "\n### only in AFTER\n1000\n\n\n    1000\n        \n\nTotal for only in AFTER:  1000\n\
                    \n### only in BEFORE\nTotal for only in BEFORE:  0\n\
                    \n### different numbers\n\
                    Total of _EVERYTHING_ BEFORE:  5,  AFTER:  1000,  DIFFERENCE:  995\n";
    assert_eq!(compared(&[counted(5, &["f"])], &[counted(1000, &[])]), expected);
    assert!(compared(&[counted(7, &[])], &[]).ends_with("BEFORE:  7,  AFTER:  0,  DIFFERENCE:  -7\n"));
}

#[test]
fn output_of_the_program_does_not_hide_the_stacks() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("long");
    let noise = "test.total_allocations: 12\n".repeat(2000);
    std::fs::write(&file, format!("{noise}\n  lib`malloc\n  1500\n")).unwrap();
    let (stacks, warnings) = of_file(&file).unwrap();
    assert_eq!((stacks, warnings), (vec![counted(1500, &["lib`malloc"])], Vec::new()));
    // The script itself finds nothing in such a file.
    std::fs::write(&file, "lib`malloc+0x1\napp`main\n1500\n").unwrap();
    let (stacks, warnings) = of_file(&file).unwrap();
    assert_eq!(stacks, [counted(1500, &["lib`malloc", "app`main"])]);
    assert!(warnings[1].starts_with("no stack is indented"), "{warnings:?}");
    std::fs::write(&file, "nothing that we know\n").unwrap();
    assert!(of_file(&file).is_err());
}

#[test]
fn other_formats_are_compared_too() {
    let (maps, _) = of_file(&fixture("bpftrace/maps.txt")).unwrap();
    assert_eq!(maps.iter().map(|stack| stack.count).sum::<u64>(), 2009);
    let (text, warnings) = of_file(&fixture("heaptrack-print/merged.txt")).unwrap();
    let parse = counted(1500, &["rows`row", "rows`parse", "rows`main"]);
    assert!(text.contains(&parse) && !warnings.is_empty(), "{text:?}");
    let folded = read_as(b"main;work;malloc 5\nmain;idle 0\n", Format::Folded).unwrap();
    assert_eq!(of_profile(&folded.profile), [counted(5, &["malloc", "work", "main"])]);
}

/// The naive implementation: every key is compared with every stack, again and again.
fn slow(before: &[Counted], after: &[Counted]) -> String {
    let key = |stack: &Counted| {
        let cut =
            |frame: &Vec<u8>| String::from_utf8(frame.clone()).unwrap().split('+').next().unwrap().to_owned();
        stack.frames.iter().map(cut).take(8).collect::<Vec<String>>().join("\n")
    };
    let of = |side: &[Counted], wanted: &str| -> Vec<Counted> {
        side.iter().filter(|stack| key(stack) == wanted).cloned().collect()
    };
    let sum = |stacks: &[Counted]| stacks.iter().map(|stack| stack.count).sum::<u64>();
    let details = |stacks: &[Counted]| {
        let lines = |stack: &Counted| {
            let frames: Vec<String> =
                stack.frames.iter().map(|frame| String::from_utf8(frame.clone()).unwrap()).collect();
            format!("    {}\n        {}\n", stack.count, frames.join("\n        "))
        };
        stacks.iter().map(lines).collect::<String>()
    };
    let mut keys: Vec<String> = before.iter().chain(after).map(key).collect();
    keys.sort();
    keys.dedup();
    let mut text = String::new();
    for (name, these, others) in [("AFTER", after, before), ("BEFORE", before, after)] {
        text += &format!("\n### only in {name}\n");
        let mut total = 0;
        for key in &keys {
            let (this, other) = (of(these, key), of(others, key));
            if sum(&this) >= 1000 && sum(&other) < 1000 {
                total += sum(&this);
                text += &format!("{}\n{key}\n\n{}\n", sum(&this), details(&this));
            }
        }
        text += &format!("Total for only in {name}:  {total}\n");
    }
    text += "\n### different numbers\n";
    for key in &keys {
        let (old, new) = (of(before, key), of(after, key));
        let (old_sum, new_sum) = (sum(&old), sum(&new));
        if old_sum >= 1000 && new_sum >= 1000 && old_sum != new_sum {
            let (old, new) = (details(&old), details(&new));
            text += &format!("before: {old_sum}, after: {new_sum}\n  AFTER\n{new}  BEFORE\n{old}\n");
        }
    }
    let (old, new) = (sum(before) as i64, sum(after) as i64);
    text + &format!("Total of _EVERYTHING_ BEFORE:  {old},  AFTER:  {new},  DIFFERENCE:  {}\n", new - old)
}

fn stacks() -> impl Strategy<Value = Vec<Counted>> {
    let frame = "[ab]`[fg](\\+[12])?";
    let stack = (0..3_u64, prop::collection::vec(frame, 0..3), 0..9_usize);
    let stack = stack.prop_map(|(thousands, mut frames, deep)| {
        // Deep stacks differ only after the eighth frame.
        frames.extend(std::iter::repeat_n(String::from("c`deep"), deep));
        Counted { count: thousands * 500, frames: frames.into_iter().map(String::into_bytes).collect() }
    });
    prop::collection::vec(stack, 0..12)
}

proptest! {
    #[test]
    fn it_equals_the_slow_twin(before in stacks(), after in stacks()) {
        prop_assert_eq!(compared(&before, &after), slow(&before, &after));
    }

    #[test]
    fn what_is_printed_is_read_again(stacks in stacks()) {
        // An empty stack is printed as a count alone.
        let text: String = stacks.iter().map(|stack| {
            let frames = stack.frames.iter().map(|frame| format!("    {}\n", String::from_utf8_lossy(frame)));
            format!("\n{}  {}\n", frames.collect::<String>(), stack.count)
        }).collect();
        prop_assert_eq!(aggregation(text.as_bytes()), stacks);
    }

    #[test]
    fn any_bytes_give_something(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        nio(&aggregation(&bytes), &[], &mut Vec::new()).unwrap();
    }
}
