//! The plugin for pytest that comes with the markers: marks limit what a test allocates and leaks, and what was not counted does not pass.

use e2e::{Exit, Finished, Workshop, run};
use std::fs;
use std::path::Path;

const TESTS: &str = r#"import unittest
import pytest

kept = []


def many(count):
    return [bytes(40) for _ in range(count)]


@pytest.fixture
def size():
    return 100_000


@pytest.mark.limit_allocations(1000)
def test_within():
    many(100)


@pytest.mark.limit_allocations(100)
def test_beyond():
    many(100)


@pytest.mark.limit_allocations("1_000")
@pytest.mark.limit_leaks("64KiB")
def test_leaks(size):
    kept.append(bytes(size))


@pytest.mark.limit_leaks("0.2 MB")
@pytest.mark.parametrize("value", ["a b", "/"])
def test_leaks_less(size, value):
    kept.append(bytes(size))


@pytest.mark.limit_allocations(1000)
def test_fails():
    assert len(kept) == -1


@pytest.mark.limit_allocations(1000)
def test_skips():
    pytest.skip("not today")


@pytest.mark.limit_allocations(1000)
async def test_coroutine():
    many(100)


@pytest.mark.limit_allocations(0)
def test_empty():
    pass


def test_plain():
    pass


class TestOld(unittest.TestCase):
    @pytest.mark.limit_allocations(1000)
    def test_old(self):
        many(100)
"#;

/// Installs the markers as pip does, so that pytest finds the plugin by itself.
fn install(workshop: &Workshop) {
    let source = workshop.file("source");
    let line = "cp -r \"$0\" source && pip install --quiet --no-index --no-build-isolation --no-deps --target site ./source";
    let mut pip = run::command("/bin/sh");
    pip.args(["-c", line]).arg(e2e::repository().join("markers/python")).current_dir(workshop.path());
    let _ = run::finish(pip.env("HOME", workshop.path())).well();
    fs::remove_dir_all(source).unwrap();
}

fn pytest(workshop: &Workshop, arguments: &[&str]) -> Finished {
    let mut command = run::command("/usr/bin/python3");
    command.args(["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]).args(arguments);
    command.env("PYTHONPATH", workshop.file("site")).env("XDG_CACHE_HOME", workshop.file("cache"));
    command.env("HOME", workshop.path()).env("PYTHONDONTWRITEBYTECODE", "1");
    run::finish(command.current_dir(workshop.file("project")))
}

/// What pytest printed of a test that failed.
fn section<'a>(finished: &'a Finished, test: &str) -> &'a str {
    let (_, after) = finished
        .stdout
        .split_once(&format!("_ {test} _"))
        .unwrap_or_else(|| panic!("{test} passed: {finished}"));
    let after = after.split_once('\n').unwrap().1;
    after.split("\n____").next().unwrap().split("\n====").next().unwrap()
}

fn project(name: &str, tests: &str) -> Workshop {
    let workshop = Workshop::new(name);
    fs::create_dir(workshop.file("project")).unwrap();
    fs::write(workshop.file("project/test_limits.py"), tests).unwrap();
    install(&workshop);
    workshop
}

fn binary() -> String {
    run::mallow_binary().canonicalize().unwrap().display().to_string()
}

#[test]
fn a_test_is_held_to_its_limits_and_its_lines_are_named() {
    let workshop = project("pytest-limits", TESTS);
    let mallow = binary();
    let ended = pytest(&workshop, &["--mallow", "--mallow-bin", &mallow]).ended(Exit::Status(1));
    assert!(ended.stdout.contains("\n5 failed, 5 passed, 1 skipped"), "{ended}");
    assert!(ended.stdout.contains("not today"), "{ended}");

    // 100 objects, their list and its growth, and what the calls need, in Python 3.11.
    let beyond = section(&ended, "test_beyond");
    assert!(beyond.starts_with("116 allocations; the limit is 100.\n"), "{beyond}");
    let line = "  113 allocations  many.<locals>.<listcomp> (test_limits.py:8) ← many (test_limits.py:8) ← test_beyond (";
    assert!(beyond.contains(line), "{beyond}");
    assert!(beyond.contains("\nall its figures: allocations 116, bytes "), "{beyond}");

    let leaks = section(&ended, "test_leaks");
    assert!(leaks.contains(" bytes are left behind; the limit is 65,536.\n"), "{leaks}");
    assert!(leaks.contains(" bytes  test_leaks (test_limits.py:29)\n"), "{leaks}");

    assert!(section(&ended, "test_fails").contains("assert len(kept) == -1"), "{ended}");
    assert!(section(&ended, "test_coroutine").contains("a coroutine cannot be counted"), "{ended}");
    let old = section(&ended, "TestOld.test_old");
    assert!(old.contains("its allocations were not counted: pytest did not call it as a function"), "{old}");
}

#[test]
fn what_is_not_counted_is_skipped_with_the_reason_or_fails() {
    let workshop = project("pytest-uncounted", TESTS);
    let skipped = pytest(&workshop, &[]).well();
    assert!(skipped.stdout.contains("\n1 passed, 10 skipped"), "{skipped}");
    assert!(skipped.stdout.contains("its allocations are not counted without --mallow"), "{skipped}");

    // There is no mallow; one that does nothing; one that runs the tests without its recorder.
    let absent = pytest(&workshop, &["--mallow"]).ended(Exit::Status(1));
    assert!(
        absent.stdout.contains("mallow is not installed") && absent.stdout.contains("\n10 failed, 1 passed"),
        "{absent}"
    );
    let idle = pytest(&workshop, &["--mallow", "--mallow-bin", "/bin/true"]).ended(Exit::Status(1));
    let sentence = "its allocations were not counted: /bin/true check ended with 0";
    assert!(idle.stdout.contains(sentence) && idle.stdout.contains("\n10 failed, 1 passed"), "{idle}");
    let unhooked = workshop.file("unhooked");
    write_program(&unhooked, &format!("#!/bin/sh\n{} check \"$2\" --no-hooks\nexit 0\n", binary()));
    let unhooked = pytest(&workshop, &["--mallow", "--mallow-bin", &unhooked.display().to_string()]);
    let unhooked = unhooked.ended(Exit::Status(1));
    assert!(unhooked.stdout.contains("\n10 failed, 1 passed"), "{unhooked}");
}

#[test]
fn a_limit_that_is_none_is_refused() {
    for (mark, sentence) in [
        ("limit_leaks(\"64 Kb\")", "'64 Kb' is no limit; it is a size such as 4096 or \"64KiB\""),
        ("limit_allocations(\"1kB\")", "'1kB' is no limit; it is a number of allocations"),
        ("limit_allocations(-1)", "-1 is no limit"),
        ("limit_allocations()", "limit_allocations has one argument, the limit."),
    ] {
        let text = format!("import pytest\n@pytest.mark.{mark}\ndef test_it():\n    pass\n");
        let workshop = Workshop::new("pytest-mark");
        fs::create_dir(workshop.file("project")).unwrap();
        fs::write(workshop.file("project/test_limits.py"), text).unwrap();
        std::os::unix::fs::symlink(e2e::repository().join("markers/python"), workshop.file("site")).unwrap();
        let refused = pytest(&workshop, &["-p", "mallow_pytest"]).ended(Exit::Status(4));
        assert!((refused.stdout.clone() + &refused.stderr).contains(sentence), "{refused}");
    }
}

/// The flags and `mallow.toml` are held to the same list.
#[test]
fn sizes_are_those_of_flags() {
    const READ: &str = r##"
import sys, mallow_pytest
for line in open(sys.argv[1], encoding="utf-8"):
    text = line.split("|")[0]
    size = mallow_pytest._size(text)
    line.startswith("#") or print(f"{text}|{'none' if size is None else size}")
"##;
    let list = e2e::repository().join("crates/mallow-base/src/quantity/sizes.txt");
    let mut python = run::command("/usr/bin/python3");
    python.args(["-c", READ]).arg(&list).env("PYTHONPATH", e2e::repository().join("markers/python"));
    let read = run::finish(python.env("PYTHONDONTWRITEBYTECODE", "1")).well();
    let listed = fs::read_to_string(list).unwrap();
    assert_eq!(read.stdout, listed.split_inclusive('\n').skip(1).collect::<String>());
}

fn write_program(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
