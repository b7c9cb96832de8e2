//! What an expression wants, and what is said of one that is none.

use super::*;
use crate::example::{allocated, frame, profile, site};
use mallow_base::Language;
use mallow_profile::{RequestTotals, Requested};
use mallow_stacks::ProcessIndex;

/// Four stacks: a parser, a Python line, a library's, and none.
fn wanted(text: &str) -> String {
    let mut made = profile();
    let at = |function: &str, file: &str, module: &str| Frame {
        file: Some(file.into()),
        ..frame(function, module)
    };
    let main = || vec![at("main", "/src/app/main.rs", "/usr/bin/app")];
    let parse =
        vec![at("app::parse::Parser<T>::next::h0123456789abcdef", "/src/app/parse/mod.rs", "/usr/bin/app")];
    let row = vec![Frame {
        language: Language::Python,
        file: Some("/srv/app.py".into()),
        function: "parse_row".into(),
        ..Frame::default()
    }];
    let inflate =
        vec![frame("operator new(unsigned long)", "/lib/libstdc++.so.6"), frame("inflate", "/lib/libz.so.1")];
    for stack in [vec![parse, main()], vec![row, main()], vec![inflate, main()], vec![]] {
        site(&mut made, 0, &stack, allocated(1, 8));
    }
    let stacks: Vec<_> = made.sites.iter().map(|site| site.stack).collect();
    let of = |allocations| Requested { allocations, bytes: 8 };
    let [calloc, aligned, both] = [(1, 0), (0, 1), (1, 1)]
        .map(|(zeroed, aligned)| RequestTotals { zeroed: of(zeroed), aligned: of(aligned) });
    let requests = [(0, calloc), (1, both), (3, aligned)].map(|(stack, totals)| (stacks[stack], totals));
    made.requests.add(ProcessIndex(0), requests.into_iter());
    let expression: Expression = text.parse().unwrap_or_else(|error| panic!("{error}"));
    let processes = [ProcessName { pid: 42, command: "/usr/bin/app --rows 3" }];
    let matching = Matching::of(&expression, &made.stacks, processes).with_requests(&made.requests);
    let thread = matching.thread(ThreadName { tid: 77, name: "worker-1" });
    let names = ["parse", "row", "inflate", "none"];
    let all = made.sites.iter().zip(names);
    let kept = all.filter(|(site, _)| matching.wants(ProcessIndex(0), site.stack, thread, 4096));
    kept.map(|(_, name)| name).collect::<Vec<_>>().join(" ")
}

#[test]
fn each_field_has_its_operators() {
    for (text, kept) in [
        ("function:parse", "parse row"),
        ("function=parse_row", "row"),
        ("function~^parse", "row"),
        ("function:Parser<…>", "parse"),
        ("function:h0123456789abcdef", "parse"),
        ("function=inflate", "inflate"),
        ("function:\"operator new(\"", "inflate"),
        ("file:parse/mod.rs", "parse"),
        ("file=app.py", "row"),
        ("file~py$", "row"),
        ("module:libz", "inflate"),
        ("module=app", "parse row inflate"),
        ("module~^/lib/", "inflate"),
        ("language:python", "row"),
        ("language=native", "parse row inflate"),
        ("request=calloc", "parse row"),
        ("request:aligned", "row none"),
        ("not request~.", "inflate"),
        ("size=4KiB", "parse row inflate none"),
        ("size>=4097", ""),
        ("size<1MiB", "parse row inflate none"),
        ("size<=4096", "parse row inflate none"),
        ("size>1.5k", "parse row inflate none"),
        ("thread:worker", "parse row inflate none"),
        ("thread=77", "parse row inflate none"),
        ("thread:7", ""),
        ("thread~^main", ""),
        ("process=app", "parse row inflate none"),
        ("process:'--rows 3'", "parse row inflate none"),
        ("process:42", "parse row inflate none"),
        ("process=ap", ""),
    ] {
        assert_eq!(wanted(text), kept, "{text}");
    }
}

#[test]
fn a_text_alone_is_a_part_of_a_function_or_a_module() {
    for (text, kept) in [
        ("parse", "parse row"),
        ("libz.so", "inflate"),
        ("parse::Parser", "parse"),
        ("Parser<T>::next", "parse"),
        ("std::vector<int>", ""),
        ("\"operator new\"", "inflate"),
        ("notable", ""),
    ] {
        assert_eq!(wanted(text), kept, "{text}");
    }
}

#[test]
fn words_and_signs_put_tests_together() {
    for (text, kept) in [
        ("function:parse and not language:python", "parse"),
        ("function:parse && !language:python", "parse"),
        ("module:libz or file:app.py", "row inflate"),
        // A value ends at a blank, so this is one.
        ("module:libz||file:app.py", ""),
        ("not main", "none"),
        ("NOT (module:libz OR function=parse_row)", "parse none"),
        ("not(module:libz) and not(function=parse_row)", "parse none"),
        // `and` binds closer than `or`.
        ("module:libz or function:parse and language:python", "row inflate"),
        ("(module:libz or function:parse) and language:python", "row"),
        ("not not module:libz", "inflate"),
        ("function~\"^(parse_row|inflate)$\"", "row inflate"),
        ("(function~^(parse_row|inflate)$)", "row inflate"),
        ("size>=4KiB and module:libz", "inflate"),
    ] {
        assert_eq!(wanted(text), kept, "{text}");
    }
}

#[test]
fn an_invalid_filter_is_refused_with_its_position() {
    for (text, at, part) in [
        ("", 0, "a test is missing"),
        ("  ", 2, "a test is missing"),
        ("function:a and", 14, "a test is missing"),
        ("not", 3, "a test is missing"),
        ("fuction:a", 0, "there is no field fuction; there are function, file"),
        ("a or name~b", 5, "there is no field name;"),
        ("function:", 9, "a value is missing"),
        ("function: ", 10, "a value is missing"),
        ("function:\"\"", 9, "a value is missing"),
        ("function<a", 8, "function has : for a part"),
        ("size:4", 4, "size is compared with"),
        ("size>4 parsecs", 7, "and, or, or the end was expected"),
        ("size>lots", 5, "lots is no number of bytes"),
        ("size>-1", 5, "-1 is no number of bytes"),
        ("function~a(", 9, "this is no regular expression: unclosed group"),
        ("function~\"[z-a]\"", 10, "this is no regular expression: invalid character class range"),
        ("function~\"(a{1000}){1000}\"", 10, "this is no regular expression: it is too large"),
        ("language:perl", 9, "no frame has the language perl"),
        ("request:valloc", 8, "valloc is no request that is told apart; there are calloc and aligned"),
        ("a b", 2, "and, or, or the end was expected"),
        ("operator new", 9, "put a text with blanks in quotes"),
        ("(a or b", 0, "this parenthesis is not closed"),
        ("a)", 1, "this parenthesis was not opened"),
        ("a and 'b", 6, "this quote is not closed"),
    ] {
        let error = text.parse::<Expression>().map(|it| it.root).unwrap_err();
        assert!(error.reason.to_string().contains(part), "{text}: {}", error.reason);
        assert_eq!(error.at, at, "{text}: {}", error.reason);
    }
    let many = vec!["a"; 65].join(" or ");
    assert_eq!(many.parse::<Expression>().unwrap_err().reason, Reason::TooMany);
    let deep = format!("{}a{}", "(".repeat(10_000), ")".repeat(10_000));
    assert_eq!(deep.parse::<Expression>().unwrap_err().reason, Reason::TooDeep);
    let nots = format!("{}a", "not ".repeat(10_000));
    assert_eq!(nots.parse::<Expression>().unwrap_err().reason, Reason::TooDeep);
}

#[test]
fn the_place_is_marked() {
    let error = "größe:1 or fuction:a".parse::<Expression>().unwrap_err();
    let error = FilterError { at: "größe:1 or ".len(), reason: Reason::NoField("fuction".into()), ..error };
    assert_eq!(
        error.to_string(),
        "there is no field fuction; there are function, file, module, language, request, size, thread, process, \
         and a text that is a name needs quotes (column 12)\n  größe:1 or fuction:a\n             ^"
    );
}

/// Of every stack either an expression or its negation is wanted, and what is read is what was typed.
#[test]
fn a_filter_and_its_negation_part_all_stacks() {
    for text in ["parse", "language:python or module:libz", "not (size>1 and file:mod.rs)"] {
        let both = format!("{} {}", wanted(text), wanted(&format!("not ({text})")));
        let mut names: Vec<&str> = both.split_whitespace().collect();
        names.sort_unstable();
        assert_eq!(names, ["inflate", "none", "parse", "row"], "{text}");
        assert_eq!(text.parse::<Expression>().unwrap().to_string(), text);
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused_within_it(text in "[ a-c():=~<>!&|\"'n-rt]{0,24}|\\PC{0,24}") {
        if let Err(error) = text.parse::<Expression>() {
            proptest::prop_assert!(error.at <= text.len() && text.is_char_boundary(error.at));
            proptest::prop_assert!(error.to_string().contains("column"));
        }
    }
}
