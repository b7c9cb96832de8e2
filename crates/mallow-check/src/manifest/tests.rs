//! Manifests: what is read of a good one, and what is said about each kind of bad one.

use super::*;
use mallow_gate::limit::{Combine, Limit};
use mallow_gate::measurement::Metric;
use proptest::prelude::*;

pub(super) fn parse(text: &str) -> Result<Manifest, ManifestError> {
    Manifest::parse(text, Path::new("mallow.toml"), Path::new("/srv/demo"))
}

/// The sentence about a bad manifest, without the file's name.
pub(super) fn said(text: &str) -> String {
    let sentence = parse(text).expect_err("a manifest that is wrong").to_string();
    sentence.strip_prefix("mallow.toml, ").expect("the file's name").to_owned()
}

/// The same for a `[[test]]` with a name and a command in its first three lines.
pub(super) fn said_of_test(lines: &str) -> String {
    said(&format!("[[test]]\nname = \"a\"\ncmd = [\"x\"]\n{lines}\n"))
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

const WHOLE: &str = r#"
[gate]
runs = 20
warmup = 2
timeout = "2min"
quiesce = "250ms"
cpus = 2
env = { TZ = "Europe/Berlin", MALLOC_ARENA_MAX = 1 }
limit.remaining = 0
limit.descriptors = 0
tolerance = { abs = 50, rel = "0.1%", combine = "or" }
ignore_sites = ["libssl*"]
plumbing = ["my_alloc*"]
baselines = "limits"
suites = ["tests/allocations", "./more"]
thresholds = "Thresholds/6.2.json"
build = "make"
c_flags = "-DFAST  -Iinclude"
cxx_flags = ["-std=c++20"]
rust_flags = ["-C", "panic=abort"]
sources = ["shared.c"]

[[test]]
name = "future_chain"
cmd = ["./bench", "future"]
ops = 1000
mode = "process"
runs = 5
warmup = 0
timeout = "500ms"
quiesce_ms = 0
cpus = 1
env = { TZ = "UTC" }
cwd = "data"
limit.allocations = { min = 67051, max = 68050 }
limit.bytes = { rel = "1%" }
limit.peak = { abs = 4096, rel = "2.5%" }
limit.remaining = { max = 4 }
limit.remaining_bytes = 64
tolerance = "0.05%"
ignore_sites = ["re.compile"]
plumbing = ["dup"]

[[test]]
name = "parse-1.0"
source = "parse.cc"
args = ["--fast"]
flags = ["-DONE"]
sources = ["parse_part.cc"]
libs = ["z", "build/libparse.a"]
mode = "slope"
ops = 10
tolerance = 3
"#;

#[test]
fn every_key_is_read() {
    let manifest = parse(WHOLE).unwrap();
    let mut defaults = Settings {
        runs: 20,
        warmup: 2,
        timeout: Duration::from_secs(120),
        quiesce_ms: Some(250),
        cpus: Some(2),
        tolerance: Some(Tolerance { abs: Some(50), rel_ppm: Some(1000), combine: Combine::Or }),
        ..Settings::default()
    };
    defaults.environment.insert("TZ".to_owned(), "Europe/Berlin".to_owned());
    defaults.environment.insert("MALLOC_ARENA_MAX".to_owned(), "1".to_owned());
    let nothing = Limit::Absolute { min: None, max: Some(0) };
    defaults.limits.by_metric = vec![(Metric::Remaining, nothing), (Metric::Descriptors, nothing)];
    defaults.limits.ignore_sites = words(&["libssl*"]);
    defaults.plumbing = words(&["my_alloc*"]);
    assert_eq!(
        manifest.gate,
        Gate {
            defaults: defaults.clone(),
            baselines: "/srv/demo/limits".into(),
            suites: vec!["/srv/demo/tests/allocations".into(), "/srv/demo/more".into()],
            thresholds: Some("/srv/demo/Thresholds/6.2.json".into()),
            build: Some("make".to_owned()),
            c_flags: words(&["-DFAST", "-Iinclude"]),
            cxx_flags: words(&["-std=c++20"]),
            rust_flags: words(&["-C", "panic=abort"]),
            sources: vec!["/srv/demo/shared.c".into()],
            swift: SwiftSettings::default(),
        }
    );
    assert_eq!(manifest.tests, [future_chain(&defaults), parse_test(&defaults)]);
}

fn future_chain(defaults: &Settings) -> TestSpec {
    let mut settings = Settings {
        runs: 5,
        warmup: 0,
        timeout: Duration::from_millis(500),
        quiesce_ms: Some(0),
        cpus: Some(1),
        tolerance: Some(Tolerance { abs: None, rel_ppm: Some(500), combine: Combine::And }),
        ..defaults.clone()
    };
    settings.environment.insert("TZ".to_owned(), "UTC".to_owned());
    let range = |min, max| Limit::Absolute { min, max: Some(max) };
    let distance = |abs, rel| Limit::Relative(Tolerance { abs, rel_ppm: Some(rel), combine: Combine::And });
    settings.limits.by_metric = vec![
        (Metric::Descriptors, range(None, 0)),
        (Metric::Allocations, range(Some(67051), 68050)),
        (Metric::Bytes, distance(None, 10_000)),
        (Metric::Peak, distance(Some(4096), 25_000)),
        (Metric::Remaining, range(None, 4)),
        (Metric::RemainingBytes, range(None, 64)),
    ];
    settings.limits.ignore_sites = words(&["libssl*", "re.compile"]);
    settings.plumbing = words(&["my_alloc*", "dup"]);
    let program = Some(Program::Command(words(&["./bench", "future"])));
    TestSpec {
        ops: Some(1000),
        mode: Mode::Process,
        directory: "/srv/demo/data".into(),
        ..TestSpec::new("future_chain", program, Path::new("/srv/demo"), settings)
    }
}

fn parse_test(defaults: &Settings) -> TestSpec {
    let tolerance = Some(Tolerance { abs: Some(3), rel_ppm: None, combine: Combine::And });
    let settings = Settings { tolerance, ..defaults.clone() };
    let program = Some(Program::Source("/srv/demo/parse.cc".into(), Language::Cxx));
    TestSpec {
        ops: Some(10),
        mode: Mode::Slope,
        arguments: words(&["--fast"]),
        flags: words(&["-DONE"]),
        sources: vec!["/srv/demo/parse_part.cc".into()],
        libs: words(&["z", "build/libparse.a"]),
        ..TestSpec::new("parse-1.0", program, Path::new("/srv/demo"), settings)
    }
}

#[test]
fn an_empty_manifest_has_the_defaults() {
    let manifest = parse("").unwrap();
    assert_eq!(manifest.gate, Gate::without_manifest(Path::new("/srv/demo")));
    assert_eq!(manifest.gate.baselines, Path::new("/srv/demo/mallow/baselines"));
    let settings = manifest.gate.defaults;
    assert_eq!((settings.runs, settings.warmup, settings.timeout), (10, 1, Duration::from_secs(60)));
    let pinned: Vec<_> = settings.environment.iter().map(|(name, value)| (&name[..], &value[..])).collect();
    assert_eq!(pinned, PINNED);
}

#[test]
fn a_misspelled_key_is_named_with_what_was_meant() {
    assert_eq!(
        said("[gate]\nrun = 5\n"),
        "line 2, column 1: there is no key `run` here; did you mean `runs`?"
    );
    for (key, own) in [("command", "cmd"), ("iterations", "ops"), ("plumbin", "plumbing")] {
        let told = said(&format!("[[test]]\nname = \"a\"\n{key} = 1\n"));
        assert_eq!(told, format!("line 3, column 1: there is no key `{key}` here; did you mean `{own}`?"));
    }
    assert_eq!(said("[gates]\n"), "line 1, column 2: there is no key `gates` here; did you mean `gate`?");
    assert_eq!(
        said_of_test("limit.allocation = 5"),
        "line 4, column 7: there is no key `allocation` here; did you mean `allocations`?"
    );
    assert_eq!(
        said_of_test("limit.bytes = { maxi = 5 }"),
        "line 4, column 17: there is no key `maxi` here; did you mean `max`?"
    );
    assert_eq!(
        said_of_test("limit.bytes = { colour = 5 }"),
        "line 4, column 17: there is no key `colour` here; there are `min`, `max`, `abs`, `rel` and `combine`"
    );
}

#[test]
fn a_key_in_the_wrong_table_is_sent_to_its_own() {
    use super::error::{OF_GATE, OF_TEST};
    for key in OF_GATE {
        let told = said(&format!("[[test]]\nname = \"a\"\n{key} = {{}}\n"));
        assert_eq!(told, format!("line 3, column 1: `{key}` is a key of [gate], not of this table"));
        assert!(!said(&format!("[gate]\n{key} = 1979-05-27\n")).contains("key"), "{key}");
    }
    for key in OF_TEST {
        let told = said(&format!("[gate]\n{key} = {{}}\n"));
        assert_eq!(told, format!("line 2, column 1: `{key}` is a key of [[test]], not of this table"));
        assert!(!said(&format!("[[test]]\n{key} = 1979-05-27\n")).contains("no key"), "{key}");
    }
    assert_eq!(
        said("build = \"make\"\n"),
        "line 1, column 1: there is no key `build` here; there are `gate`, `swift`, `test` and `defaults`"
    );
}

#[test]
fn what_is_no_toml_is_said_with_its_place() {
    assert_eq!(said("[gate\n"), "line 1, column 6: unclosed table, expected `]`");
    assert_eq!(said("[gate]\nruns = 5\nruns = 6\n"), "line 3, column 1: duplicate key");
    assert_eq!(said("x"), "line 1, column 2: key with no value, expected `=`");
    // Columns are counted in letters, not in bytes.
    assert_eq!(said("# ä\n\"äää\" 5"), "line 2, column 7: key with no value, expected `=`");
}

#[test]
fn a_value_of_the_wrong_kind_is_said_without_the_names_of_types() {
    for (line, sentence) in [
        ("runs = \"ten\"", "column 8: here a whole number is expected, not \"ten\""),
        ("warmup = -1", "column 10: here a whole number from 0 to 4294967295 is expected, not -1"),
        ("runs = 0", "column 8: this must be at least 1, and is 0"),
        ("cpus = -1", "column 8: this must be at least 1, and is -1"),
        (
            "timeout = 0",
            "column 11: here a time, such as \"60s\", \"500ms\" or \"2min\", or a number of seconds, is expected, not 0",
        ),
        (
            "timeout = \"0s\"",
            "column 11: here a time, such as \"60s\", \"500ms\" or \"2min\", or a number of seconds, is expected, not \"0s\"",
        ),
        ("suites = \"tests\"", "column 10: here a list is expected, not \"tests\""),
        ("build = [\"make\"]", "column 9: here a text in quotes is expected, not a list"),
        ("env = { A = true }", "column 13: here a variable's value in quotes is expected, not true"),
        ("env = { \"A=B\" = \"1\" }", "column 9: \"A=B\" cannot be the name of a variable"),
        ("env = { A = \"\\u0000\" }", "column 13: a variable's value cannot have a zero byte in it"),
        (
            "c_flags = 5",
            "column 11: here flags, such as [\"-DFAST\", \"-Iinclude\"] or \"-DFAST -Iinclude\" is expected, not 5",
        ),
    ] {
        assert_eq!(said(&format!("[gate]\n{line}\n")), format!("line 2, {sentence}"));
    }
    assert_eq!(
        said("[test]\nname = \"a\"\n"),
        "line 1, column 1: here a list is expected, not a table; headings of tests have two brackets: [[test]]"
    );
}

#[test]
fn tests_need_a_name_that_can_be_a_files() {
    assert_eq!(said("[[test]]\ncmd = [\"x\"]\n"), "line 1, column 1: `name` is missing");
    for (name, sentence) in [
        ("", "a test's name cannot be empty"),
        (
            "a b",
            "the test's name \"a b\" has ' ' in it; names of tests are made of letters, digits, `_`, `-` and `.`",
        ),
        (
            "a/b",
            "the test's name \"a/b\" has '/' in it; names of tests are made of letters, digits, `_`, `-` and `.`",
        ),
        ("..", "the test's name \"..\" must begin with a letter, a digit or `_`"),
        ("-a", "the test's name \"-a\" must begin with a letter, a digit or `_`"),
        (&"x".repeat(121), "the test's name has 121 letters; it can have 120"),
    ] {
        assert_eq!(said(&format!("[[test]]\nname = \"{name}\"\n")), format!("line 2, column 8: {sentence}"));
    }
    assert_eq!(
        said("[[test]]\nname = \"a\"\ncmd = [\"x\"]\n\n[[test]]\nname = \"a\"\ncmd = [\"y\"]\n"),
        "line 6, column 8: the test \"a\" is in line 2 already"
    );
}

#[test]
fn a_test_runs_one_thing_and_has_the_keys_for_it() {
    for (line, sentence) in [
        ("ops = 0", "column 7: this must be at least 1, and is 0"),
        (
            "source = \"a.c\"",
            "column 10: a test has `cmd` or `source`, not both: either there is a program or it is built",
        ),
        ("args = [\"a\"]", "column 8: a command's arguments belong in `cmd`; `args` is for `source`"),
        ("libs = [\"z\"]", "column 8: `libs` is for tests with `source`; a command is not built"),
        ("mode = \"proces\"", "column 8: there is no mode \"proces\"; did you mean \"process\"?"),
        (
            "mode = \"q\"",
            "column 8: there is no mode \"q\"; there are \"region\", \"process\", \"repeat\", \"slope\"",
        ),
        (
            "mode = \"slope\"",
            "column 8: mode \"slope\" needs `ops`: how many operations the program is asked for first",
        ),
    ] {
        assert_eq!(said_of_test(line), format!("line 4, {sentence}"));
    }
    let test = |line: &str| said(&format!("[[test]]\nname = \"a\"\n{line}\n"));
    assert_eq!(test("cmd = []"), "line 3, column 7: a command needs at least the name of a program");
    assert_eq!(test("cmd = [\"\"]"), "line 3, column 7: the name of the program is empty");
    assert_eq!(
        test("cmd = \"./x\""),
        "line 3, column 7: here a list of words, such as [\"./bench\", \"--fast\"] is expected, not \"./x\""
    );
    assert_eq!(test("cmd = [\"x\", 5]"), "line 3, column 13: here a text in quotes is expected, not 5");
    assert_eq!(
        test("source = \"a.go\""),
        "line 3, column 10: nothing is known about how to build a.go; sources end in .c, .cc, .cpp, .cxx, .rs, \
         .swift, .py, .rb, .js, .mjs"
    );
}

proptest! {
    /// Whatever is in the file: a manifest or a sentence with a place that exists.
    #[test]
    fn no_text_is_a_panic(cut in 0..WHOLE.len(), letter in any::<char>()) {
        let cut = (0..=cut).rev().find(|at| WHOLE.is_char_boundary(*at)).unwrap_or(0);
        let text = format!("{}{letter}{}", &WHOLE[..cut], &WHOLE[cut..]);
        if let Err(error) = parse(&text) {
            let lines: Vec<&str> = text.split('\n').collect();
            prop_assert!(error.line >= 1 && error.line <= lines.len());
            prop_assert!(error.column >= 1 && error.column <= lines[error.line - 1].chars().count() + 1);
        }
    }
}

#[test]
fn tests_in_swift_may_need_a_package() {
    let text = "[swift]\npackage = \"../..\"\nmodules = [\"Core\", \"Http\"]\nsources = [\"shared.swift\"]\n";
    let swift = parse(text).unwrap().gate.swift;
    let package = swift.package.unwrap();
    assert_eq!(package.folder, Path::new("/srv/demo/../.."));
    assert_eq!((package.modules, package.dependencies), (words(&["Core", "Http"]), Vec::new()));
    assert_eq!(swift.sources, [PathBuf::from("/srv/demo/shared.swift")]);
    let error = parse("[swift]\nmodules = [\"Core\"]\n").unwrap_err();
    assert_eq!(error.reason, "`modules` and `dependencies` need `package`: the folder of a Package.swift");
}

#[test]
fn a_time_without_a_unit_is_in_that_of_its_key() {
    let times = |lines: &str| {
        let defaults = parse(&format!("[gate]\n{lines}\n")).unwrap().gate.defaults;
        (defaults.timeout.as_millis(), defaults.quiesce_ms)
    };
    assert_eq!(times("timeout = 60\nquiesce = 250"), (60_000, Some(250)));
    assert_eq!(times("timeout = 1.5\nquiesce = \"1m\""), (1500, Some(60_000)));
    assert_eq!(times("timeout = \"1m30s\"\nquiesce_ms = 0"), (90_000, Some(0)));
}
