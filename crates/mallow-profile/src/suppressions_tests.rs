//! Patterns as a table, whole files, and stacks.

use super::*;
use crate::{Address, Availability, Process, ProfileBuilder, Recording, StackId};
use proptest::prelude::*;

fn one(pattern: &str) -> Suppression {
    Suppression::new(pattern, 1)
}

#[test]
fn patterns() {
    let name = "ns::Pool::grow(int)";
    let cases = [
        ("grow", name, true),
        ("ns::Pool::grow(int)", name, true),
        ("Grow", name, false),
        ("^ns", name, true),
        ("^Pool", name, false),
        ("(int)$", name, true),
        ("grow$", name, false),
        ("^ns*grow*", name, true),
        ("^ns*int)$", name, true),
        ("^ns::Pool::grow(int)$", name, true),
        ("^ns::Pool$", name, false),
        ("Pool*ns", name, false),
        ("*", name, true),
        ("^*$", name, true),
        ("p*o*l*g*w", name, false),
        ("P*o*l*g*w", name, true),
        // An end is the text's end, not that of the first occurrence.
        ("foo$", "foofoo", true),
        ("a*ab$", "aab", true),
        ("^aa*aa$", "aaa", false),
        ("ab*ab", "ab", false),
        ("$", "x", true),
        ("^", "x", true),
        ("^$", "x", false),
        ("a$b", "a$b", true),
        ("a^b", "a^b", true),
        ("**x", "wx", true),
        ("*", "", false),
        ("libfoo.so", "/usr/lib/libfoo.so.1", true),
    ];
    for (pattern, text, expected) in cases {
        assert_eq!(one(pattern).fits(text), expected, "{pattern} on {text}");
    }
}

#[test]
fn a_file_has_comments_blanks_and_lines() {
    let text = "# known\n\nleak:first\n  leak: second* \r\n\t# leak:third\n";
    let found: Vec<(String, usize)> =
        Suppression::parse(text).unwrap().into_iter().map(|one| (one.pattern, one.line)).collect();
    assert_eq!(found, [("first".into(), 3), ("second*".into(), 4)]);
    assert_eq!(Suppression::parse(""), Ok(Vec::new()));
}

#[test]
fn what_is_no_suppression_is_told_with_its_line() {
    for (text, sentence) in [
        ("leak:a\nfoo", "line 2 does not begin with `leak:`"),
        ("leak:", "line 1 has no pattern behind `leak:`; `leak:*` would suppress everything"),
        (
            "\nrace:foo",
            "line 2 suppresses what another sanitizer finds; only lines of `leak:PATTERN` suppress leaks",
        ),
        ("{\n", "line 1 belongs to valgrind's suppressions; LeakSanitizer's are lines of `leak:PATTERN`"),
    ] {
        assert_eq!(Suppression::parse(text).unwrap_err().to_string(), sentence);
    }
}

/// Stacks leaf first, each leaking 10 bytes in 1 block of 100 in 5.
fn leaking(stacks: &[&[Frame]]) -> Profile {
    let mut builder = ProfileBuilder::new(Recording::default(), Availability::ALL);
    let process = builder.add_process(Process::default());
    for frames in stacks {
        let locations: Vec<_> = frames
            .iter()
            .rev()
            .map(|frame| builder.location(Address::Unknown, vec![frame.clone()]))
            .collect();
        let stack = builder.stack(locations);
        let totals = SiteTotals {
            allocations: 5,
            bytes: 100,
            leaked_bytes: 10,
            leaked_blocks: 1,
            ..SiteTotals::default()
        };
        builder.add_site(process, stack, &totals);
        builder.process(process).totals.leaked_bytes += 10;
    }
    builder.finish()
}

fn frame(function: &str, file: Option<&str>, module: Option<&str>) -> Frame {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Frame { function: function.into(), file: owned(file), module: owned(module), ..Frame::default() }
}

#[test]
fn function_file_and_module_of_any_frame_suppress_and_totals_stay() {
    let main = frame("main", Some("/src/main.c"), Some("/bin/app"));
    let (a, b, c) =
        (frame("a", Some("/src/a.c"), None), frame("b", None, Some("/lib/libb.so")), frame("c", None, None));
    let mut profile = leaking(&[&[a, main.clone()], &[b, main.clone()], &[c, main.clone()], &[main], &[]]);
    let suppressions = Suppression::parse("leak:^c$\nleak:libb\nleak:/a.c\nleak:nobody\n").unwrap();
    let taken = suppress_leaks(&mut profile, &suppressions);
    let by: Vec<(usize, u64, u64, Option<StackId>)> = taken
        .iter()
        .map(|one| (one.by, one.site.totals.leaked_bytes, one.site.totals.allocations, one.site.stack))
        .collect();
    let stack = |index: usize| profile.sites[index].stack;
    assert_eq!(by, [(2, 10, 0, stack(0)), (1, 10, 0, stack(1)), (0, 10, 0, stack(2))]);
    let left: Vec<u64> = profile.sites.iter().map(|site| site.totals.leaked_bytes).collect();
    assert_eq!(left, [0, 0, 0, 10, 10]);
    assert!(profile.sites.iter().all(|site| site.totals.bytes == 100));
    assert_eq!(profile.totals().leaked_bytes, 50);
    assert_eq!(suppress_leaks(&mut profile, &suppressions), []);
}

#[test]
fn the_innermost_frame_decides_which_one_it_was() {
    let mut profile = leaking(&[&[frame("inner", None, None), frame("outer", None, None)]]);
    let suppressions = Suppression::parse("leak:outer\nleak:inner\nleak:inn").unwrap();
    assert_eq!(suppress_leaks(&mut profile, &suppressions)[0].by, 1);
}

/// The naive twin: tries every alignment of the pattern with the text.
fn fits_slowly(pattern: &[char], text: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('*', rest)) => (0..=text.len()).any(|at| fits_slowly(rest, &text[at..])),
        Some((c, rest)) => text.first() == Some(c) && fits_slowly(rest, &text[1..]),
    }
}

proptest! {
    #[test]
    fn fitting_agrees_with_trying_everything(
        from_start: bool, to_end: bool, body in "[ab*]{1,6}", text in "[ab]{1,8}",
    ) {
        let tied = format!("{}{body}{}", if from_start { "^" } else { "" }, if to_end { "$" } else { "" });
        let whole = format!("{}{body}{}", if from_start { "" } else { "*" }, if to_end { "" } else { "*" });
        let (pattern, letters): (Vec<char>, Vec<char>) = (whole.chars().collect(), text.chars().collect());
        prop_assert_eq!(one(&tied).fits(&text), fits_slowly(&pattern, &letters), "{} on {}", tied, text);
    }
}
