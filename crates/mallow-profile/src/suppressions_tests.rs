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
    let found: Vec<(String, usize)> = Suppression::parse(text)
        .unwrap()
        .into_iter()
        .map(|one| (one.pattern.into_owned(), one.line))
        .collect();
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

#[test]
fn what_a_system_library_keeps_for_itself_is_known() {
    let in_module = |function: &str, module: &str| frame(function, None, Some(module));
    let libc = |function: &str| in_module(function, "/lib/x86_64-linux-gnu/libc.so.6");
    let app = |function: &str| in_module(function, "/home/me/app");
    let loader = |function: &str| in_module(function, "/lib64/ld-linux-x86-64.so.2");
    let cxx = |function: &str| in_module(function, "/usr/lib/libstdc++.so.6.0.30");
    let cases: Vec<(Vec<Frame>, Option<&str>)> = vec![
        (
            vec![libc("_IO_file_doallocate"), libc("0x7f"), libc("puts"), app("main")],
            Some("^_IO_file_doallocate$"),
        ),
        (vec![libc("strdup"), libc("setlocale"), app("main")], Some("^setlocale$")),
        (vec![cxx("0x1f"), loader("call_init"), loader("_dl_init")], Some("ld-linux")),
        // Of two frames that fit, the inner one names the rule.
        (vec![libc("0x1"), libc("localtime"), libc("__nss_database_get"), app("main")], Some("^localtime$")),
        // What a library gives to the program is the program's.
        (vec![libc("strdup"), app("main")], None),
        (vec![cxx("std::string::_M_create"), app("read"), app("main")], None),
        // What the program does where a library calls it, too.
        (vec![app("compare"), libc("setlocale"), app("main")], None),
        (vec![app("Global::Global"), loader("call_init"), loader("_dl_init")], None),
        (vec![libc("strdup"), app("Global::Global"), loader("call_init")], None),
        (vec![loader("_dl_allocate_tls"), libc("pthread_create"), app("main")], None),
        // A program's own function of that name.
        (vec![app("setlocale"), app("main")], None),
        (vec![frame("setlocale", None, None), app("main")], None),
    ];
    let stacks: Vec<&[Frame]> = cases.iter().map(|case| case.0.as_slice()).collect();
    let mut profile = leaking(&stacks);
    let known = known_leaks();
    let taken = suppress_leaks(&mut profile, &known);
    for (site, (frames, expected)) in profile.sites.iter().zip(&cases) {
        let by = taken.iter().find(|one| one.site.stack == site.stack);
        let pattern = by.map(|one| known[one.by].pattern.as_ref());
        assert_eq!(pattern, *expected, "{frames:?}");
        assert_eq!(site.totals.leaked_bytes, if expected.is_some() { 0 } else { 10 });
    }
    // A line of the user's comes first.
    let mut own = Suppression::parse("leak:main").unwrap();
    own.extend(known);
    assert_eq!(suppress_leaks(&mut leaking(&stacks[..1]), &own)[0].by, 0);
}

#[test]
fn more_blocks_than_a_rule_allows_are_a_leak() {
    let doallocate = frame("_IO_file_doallocate", None, Some("/lib/libc.so.6"));
    let mut profile = leaking(&[&[doallocate, frame("main", None, Some("/bin/app"))]]);
    profile.sites[0].totals.leaked_blocks = 4;
    assert_eq!(suppress_leaks(&mut profile, &known_leaks()), []);
    profile.sites[0].totals.leaked_blocks = 3;
    assert_eq!(suppress_leaks(&mut profile, &known_leaks()).len(), 1);
}

/// Nothing is suppressed that goes on and on.
#[test]
fn every_rule_has_a_limit_of_blocks() {
    assert!(KNOWN_LEAKS.iter().all(|known| (1..=64).contains(&known.blocks_max)));
    let intern = |function: &str| frame(function, None, Some("/usr/lib/libglib-2.0.so.0"));
    let stack = [intern("g_malloc"), intern("g_quark_from_string"), frame("main", None, Some("/bin/app"))];
    let mut profile = leaking(&[&stack]);
    profile.sites[0].totals.leaked_blocks = 65;
    assert_eq!(suppress_leaks(&mut profile, &known_leaks()), []);
    profile.sites[0].totals.leaked_blocks = 64;
    assert_eq!(suppress_leaks(&mut profile, &known_leaks()).len(), 1);
}

#[test]
fn every_rule_names_patterns_libraries_and_what_it_is() {
    for known in KNOWN_LEAKS {
        assert!(
            !known.patterns.is_empty() && !known.libraries.is_empty() && !known.what.is_empty(),
            "{known:?}"
        );
        assert!(known.patterns.iter().all(|pattern| *pattern != "*" && !pattern.is_empty()), "{known:?}");
    }
    assert!(known_leaks().iter().all(|one| one.known.is_some()));
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
