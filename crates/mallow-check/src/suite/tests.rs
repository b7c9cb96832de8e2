//! Suites in temporary folders: which tests are found, and what is said when none are.

use super::*;
use std::fs;
use tempfile::TempDir;

struct Folder(TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Folder {
        let folder = Folder(TempDir::new().unwrap());
        for (name, text) in files {
            let path = folder.0.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        folder
    }

    /// As errors name it: the path without symbolic links.
    fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn open(&self, below: &str, only: &[&str]) -> Result<Suite, SuiteError> {
        let only: Vec<String> = only.iter().map(|word| (*word).to_owned()).collect();
        Suite::open(Some(&self.path().join(below)), &only)
    }

    fn names(&self, below: &str, only: &[&str]) -> Vec<String> {
        self.open(below, only).unwrap().tests.into_iter().map(|test| test.name).collect()
    }

    /// The sentence of an error, with `DEMO` for the folder.
    fn said(&self, below: &str, only: &[&str]) -> String {
        let sentence = self.open(below, only).expect_err("no suite").to_string();
        sentence.replace(self.path().to_str().unwrap(), "DEMO")
    }
}

#[test]
fn the_test_files_of_a_bare_folder_are_tests() {
    let folder = Folder::new(&[
        ("test_ping_pong.c", ""),
        ("test_a.cc", ""),
        ("test_b.cpp", ""),
        ("test_c.cxx", ""),
        ("test_d.rs", ""),
        ("test_e.py", ""),
        ("test_f.rb", ""),
        ("test_g.js", ""),
        ("test_h.mjs", ""),
        ("test_i.swift", ""),
        ("test_notes.txt", ""),
        ("test_no_ending", ""),
        ("shared.c", ""),
        ("test_folder.c/inner.txt", ""),
        ("below/test_below.c", ""),
    ]);
    let suite = folder.open("", &[]).unwrap();
    let names: Vec<&str> = suite.tests.iter().map(|test| &test.name[..]).collect();
    let letters = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "ping_pong"];
    assert_eq!(names, letters.map(|letter| format!("test_{letter}")));
    assert_eq!(suite.folder, folder.path());
    assert_eq!(suite.manifest, None);
    assert_eq!(suite.gate.baselines, folder.path().join("mallow/baselines"));
    let source = folder.path().join("test_ping_pong.c");
    assert_eq!(suite.tests[9].program, Some(Program::Source(source, crate::manifest::Language::C)));
    assert!(suite.selection.is_all());
}

#[test]
fn a_manifest_is_taken_before_the_files_beside_it() {
    let manifest = "[[test]]\nname = \"one\"\ncmd = [\"true\"]\n";
    let folder = Folder::new(&[("mallow.toml", manifest), ("extra.mallow.toml", ""), ("test_a.c", "")]);
    assert_eq!(folder.names("", &[]), ["one"]);
    assert_eq!(folder.names("mallow.toml", &[]), ["one"]);
    let folder = Folder::new(&[("unit.mallow.toml", manifest), ("test_a.c", "")]);
    assert_eq!(folder.names("", &[]), ["one"]);
    let folder = Folder::new(&[("unit.mallow.toml", manifest), ("io.mallow.toml", manifest)]);
    assert_eq!(
        folder.said("", &[]),
        "DEMO/ has several manifests, io.mallow.toml and unit.mallow.toml: name one"
    );
}

#[test]
fn a_manifests_tests_come_first_and_say_more_about_files() {
    let manifest = r#"
        [gate]
        suites = ["tests", "./tests"]
        [[test]]
        name = "bench"
        cmd = ["true"]
        [[test]]
        name = "test_b"
        ops = 7
        [[test]]
        name = "renamed"
        source = "tests/test_c.c"
    "#;
    let folder = Folder::new(&[
        ("mallow.toml", manifest),
        ("tests/test_a.c", ""),
        ("tests/test_b.py", ""),
        ("tests/test_c.c", ""),
    ]);
    let suite = folder.open("", &[]).unwrap();
    assert_eq!(suite.names, ["bench", "test_b", "renamed", "test_a"]);
    assert_eq!(suite.tests[1].ops, Some(7));
    let source = folder.path().join("tests/test_b.py");
    assert_eq!(suite.tests[1].program, Some(Program::Source(source, crate::manifest::Language::Python)));
}

#[test]
fn the_same_name_twice_is_refused() {
    let folder = Folder::new(&[("test_a.c", ""), ("test_a.py", "")]);
    assert_eq!(folder.said("", &[]), "DEMO/test_a.c and DEMO/test_a.py are both called test_a: rename one");
    let manifest = "[gate]\nsuites = [\"t\"]\n[[test]]\nname = \"test_a\"\nsource = \"other.c\"\n";
    let folder = Folder::new(&[("mallow.toml", manifest), ("t/test_a.c", ""), ("other.c", "")]);
    assert_eq!(folder.said("", &[]), "DEMO/other.c and DEMO/t/test_a.c are both called test_a: rename one");
}

#[test]
fn no_tests_are_an_error_that_says_what_was_looked_for() {
    let wanted = "test_*.c, .cc, .cpp, .cxx, .rs, .swift, .py, .rb, .js or .mjs";
    let folder = Folder::new(&[("empty/x.c", ""), ("mallow.toml", "[gate]\nruns = 3\n")]);
    assert_eq!(folder.said("empty", &[]), format!("there is no mallow.toml and no {wanted} in DEMO/empty"));
    assert_eq!(
        folder.said("", &[]),
        "DEMO/mallow.toml has no [[test]] and no `suites`: there is nothing to check"
    );
    let folder = Folder::new(&[("mallow.toml", "[gate]\nsuites = [\"t\"]\n"), ("t/x.c", "")]);
    assert_eq!(
        folder.said("", &[]),
        format!("DEMO/mallow.toml has no [[test]], and there is no {wanted} in DEMO/t")
    );
}

#[test]
fn what_is_not_there_is_named() {
    let folder = Folder::new(&[("x.toml", ""), ("bad.mallow.toml", "[gate]\nrun = 1\n")]);
    assert_eq!(
        folder.said("nowhere", &[]),
        "cannot read DEMO/nowhere: No such file or directory (os error 2)"
    );
    assert_eq!(
        folder.said("x.toml", &[]),
        "DEMO/x.toml is no manifest: name a folder, mallow.toml or a NAME.mallow.toml"
    );
    assert_eq!(
        folder.said("bad.mallow.toml", &[]),
        "DEMO/bad.mallow.toml, line 2, column 1: there is no key `run` here; did you mean `runs`?"
    );
    let folder = Folder::new(&[("mallow.toml", "[gate]\nsuites = [\"t\"]\n")]);
    assert_eq!(folder.said("", &[]), "cannot read DEMO/t: No such file or directory (os error 2)");
    let folder = Folder::new(&[("mallow.toml", "[[test]]\nname = \"test_a\"\n")]);
    assert_eq!(
        folder.said("", &[]),
        "the test \"test_a\" in DEMO/mallow.toml has neither `cmd` nor `source`, and no file in its suite folders \
         is called test_a"
    );
    let folder = Folder::new(&[("test_a b.c", "")]);
    assert_eq!(
        folder.said("", &[]),
        "DEMO/test_a b.c cannot be a test: the test's name \"test_a b\" has ' ' in it; names of tests are made of \
         letters, digits, `_`, `-` and `.`"
    );
}

#[test]
fn tests_are_chosen_by_name_by_pattern_and_by_region() {
    let folder =
        Folder::new(&[("test_ping.c", ""), ("test_pong.c", ""), ("test_tcp.c", ""), ("test_udp.c", "")]);
    assert_eq!(folder.names("", &["test_udp", "test_ping"]), ["test_ping", "test_udp"]);
    assert_eq!(folder.names("", &["test_p?ng"]), ["test_ping", "test_pong"]);
    // A region is a part of its test, which is run whole, and what regions there are is not known before.
    assert_eq!(folder.names("", &["test_udp.connect"]), ["test_udp"]);
    assert_eq!(folder.names("", &["*p.connect"]), ["test_ping", "test_pong", "test_tcp", "test_udp"]);
    let suite = folder.open("", &["test_udp"]).unwrap();
    assert!(!suite.selection.is_all());
    assert_eq!(suite.test_of("test_udp.connect"), "test_udp");
    assert_eq!((suite.test_of("test_udp"), suite.test_of("gone.x")), ("test_udp", "gone.x"));
    assert_eq!(suite.names, ["test_ping", "test_pong", "test_tcp", "test_udp"]);
}

#[test]
fn a_name_that_matches_nothing_is_an_error_even_beside_one_that_does() {
    let folder = Folder::new(&[("test_ping.c", ""), ("test_pong.c", ""), ("test_tcp.c", "")]);
    assert_eq!(
        folder.said("", &["test_tpc"]),
        "there is no test or region \"test_tpc\"; did you mean test_tcp?"
    );
    assert_eq!(
        folder.said("", &["test_tcp", "test_pingg"]),
        "there is no test or region \"test_pingg\"; there are test_ping, test_pong"
    );
    assert_eq!(
        folder.said("", &["qwerty"]),
        "there is no test or region \"qwerty\"; there are test_ping, test_pong, test_tcp"
    );
    assert_eq!(
        folder.said("", &["future_*"]),
        "no test or region matches \"future_*\"; there are test_ping, test_pong, test_tcp"
    );
    assert_eq!(
        folder.said("", &[""]),
        "there is no test or region \"\"; there are test_ping, test_pong, test_tcp"
    );
    let many: Vec<String> = (0..9).map(|number| format!("test_{number}{number}{number}{number}.c")).collect();
    let folder = Folder::new(&many.iter().map(|name| (&name[..], "")).collect::<Vec<_>>());
    assert_eq!(
        folder.said("", &["qwerty"]),
        "there is no test or region \"qwerty\" among the 9 of this suite"
    );
    let folder = Folder::new(&[("test_ping_pong.c", ""), ("test_x.c", "")]);
    assert_eq!(
        folder.said("", &["test_ping_pon"]),
        "there is no test or region \"test_ping_pon\"; did you mean test_ping_pong?"
    );
}
