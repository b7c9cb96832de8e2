//! The worked examples of `programs/gate/examples`: pytest, cargo and ctest run the gate, and fail when it fails.

use e2e::{Exit, Workshop, run};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies an example, so that a test may change it and nothing is written into the repository.
fn copied(workshop: &Workshop, example: &str) -> PathBuf {
    let from = e2e::repository().join("programs/gate/examples").join(example);
    let to = workshop.file(example);
    copy(&from, &to);
    to
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let is_built = entry.file_name() == "target";
        if is_built {
            continue;
        }
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

/// Replaces a text that occurs once in a file.
fn replace(file: &Path, old: &str, new: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert_eq!(text.matches(old).count(), 1, "{old:?} in {}", file.display());
    fs::write(file, text.replace(old, new)).unwrap();
}

/// Adds `mallow` to PATH, and moves its cache into the test's own folder.
fn with_mallow(mut command: Command, workshop: &Workshop, path: &str) -> Command {
    let folder = run::mallow_binary().canonicalize().unwrap();
    let mut paths = OsString::from(folder.parent().unwrap());
    paths.push(format!(":{path}"));
    command.env("PATH", paths).env("XDG_CACHE_HOME", workshop.file("cache"));
    command
}

#[test]
fn pytest_makes_a_test_of_each_allocation_test() {
    let workshop = Workshop::new("pytest");
    let example = copied(&workshop, "pytest");
    let pytest = || {
        let mut command = with_mallow(run::command("/usr/bin/python3"), &workshop, "/usr/bin:/bin");
        command.args(["-B", "-m", "pytest", "-p", "no:cacheprovider"]).current_dir(&example);
        run::finish(&mut command)
    };
    let passed = pytest().well();
    assert!(passed.stdout.contains("2 passed"), "{passed}");

    replace(
        &example.join("header.py"),
        "value.split(\", \")",
        "value.strip(\"!\").split(\", \") + [bytes(40)]",
    );
    let failed = pytest().ended(Exit::Status(1));
    assert!(failed.stdout.contains("REGRESSED") && failed.stdout.contains("test_split"), "{failed}");
    assert!(failed.stdout.contains("1 failed, 1 passed"), "{failed}");
}

#[test]
fn cargo_fails_a_test_of_the_crate() {
    let workshop = Workshop::new("cargo");
    let example = copied(&workshop, "cargo");
    let markers = e2e::repository().join("markers/rust");
    replace(&example.join("Cargo.toml"), "../../../../markers/rust", &markers.to_string_lossy());
    let cargo = || {
        let path = std::env::var("PATH").unwrap_or_default();
        // Cargo's own variables locate its toolchain, so this environment is not cleared.
        let mut command = with_mallow(Command::new(env!("CARGO")), &workshop, &path);
        command.env("MALLOW_BIN", run::mallow_binary()).env_remove("CARGO_TARGET_DIR");
        run::finish(command.args(["test", "--offline"]).current_dir(&example))
    };
    let passed = cargo().well();
    assert!(passed.stdout.contains("test allocations ... ok"), "{passed}");

    replace(&example.join("src/lib.rs"), "part.trim().to_owned()", "part.to_owned().trim().to_owned()");
    let failed = cargo().ended(Exit::Status(101));
    assert!(failed.stdout.contains("REGRESSED"), "{failed}");
}

#[test]
fn ctest_builds_the_test_with_the_sources_of_the_project() {
    let workshop = Workshop::new("ctest");
    let example = copied(&workshop, "ctest");
    let build = workshop.file("build");
    let mut cmake = with_mallow(run::command("cmake"), &workshop, "/usr/bin:/bin");
    let _ = run::finish(cmake.arg("-S").arg(&example).arg("-B").arg(&build)).well();
    let ctest = || {
        let mut command = with_mallow(run::command("ctest"), &workshop, "/usr/bin:/bin");
        run::finish(command.arg("--test-dir").arg(&build).arg("--output-on-failure"))
    };
    let passed = ctest().well();
    assert!(passed.stdout.contains("100% tests passed, 0 tests failed out of 1"), "{passed}");

    replace(&example.join("header.c"), "if (!copy)", "free(strdup(name));\n    if (!copy)");
    let failed = ctest().ended(Exit::Status(8));
    assert!(failed.stdout.contains("REGRESSED"), "{failed}");
}
