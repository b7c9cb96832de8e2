//! `cargo mallow`: cargo's programs are recorded with names and lines, and neither cargo nor the compiler is.

use e2e::session::json;
use e2e::{Exit, Finished, Workshop, run};
use serde_json::Value;
use std::fs;
use std::process::Command;

const LIBRARY: &str = "//! Keeps blocks.\n\n\
    /// Keeps so many.\n\
    #[inline(never)]\n\
    pub fn keep(count: usize) -> Vec<Box<[u8; 64]>> {\n\
    \x20   (0..count).map(|at| Box::new([at as u8; 64])).collect()\n\
    }\n\n\
    #[test]\n\
    fn it_keeps() {\n\
    \x20   std::mem::forget(keep(7));\n\
    }\n";
const PROGRAM: &str = "//! Keeps as many as it is told to.\n\n\
    fn main() {\n\
    \x20   let count = std::env::args().nth(1).unwrap().parse().unwrap();\n\
    \x20   std::mem::forget(kept::keep(count));\n\
    \x20   std::process::exit(3);\n\
    }\n";

/// A crate with a library, its test and a program.
fn package(name: &str) -> Workshop {
    let workshop = Workshop::new(name);
    fs::create_dir_all(workshop.file("a crate/src")).unwrap();
    let manifest = "[package]\nname = \"kept\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[lib]\ndoctest = false\n\n\
        [profile.release]\nstrip = true\n\n[workspace]\n";
    for (file, text) in [("Cargo.toml", manifest), ("src/lib.rs", LIBRARY), ("src/main.rs", PROGRAM)] {
        fs::write(workshop.file("a crate").join(file), text).unwrap();
    }
    workshop
}

/// `cargo mallow`, as cargo finds it: on PATH.
fn cargo_mallow(workshop: &Workshop, arguments: &[&str]) -> Finished {
    let folder = run::mallow_binary().canonicalize().unwrap().parent().unwrap().to_owned();
    let path = std::env::var("PATH").unwrap_or_default();
    // Cargo's own variables say where its toolchain is, so this environment is not cleared.
    let mut cargo = Command::new(env!("CARGO"));
    cargo.env("PATH", format!("{}:{path}", folder.display())).env_remove("CARGO_TARGET_DIR");
    cargo.arg("mallow").args(arguments).current_dir(workshop.file("a crate"));
    run::finish(&mut cargo)
}

/// The traces that there are, sorted.
fn traces(workshop: &Workshop) -> Vec<String> {
    let names = fs::read_dir(workshop.file("a crate")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut traces: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    traces.retain(|name| name.ends_with(".mallow"));
    traces.sort();
    traces
}

/// The command of a trace's one process, and its sites.
fn report(workshop: &Workshop, trace: &str) -> (String, Vec<Value>) {
    let mut report = run::mallow();
    report.args(["report", "--json", trace]).current_dir(workshop.file("a crate"));
    let report = json(&run::finish(&mut report).well().stdout);
    let processes = report["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 1, "{processes:?}");
    (processes[0]["command"].as_str().unwrap().to_owned(), report["sites"].as_array().unwrap().clone())
}

#[test]
fn a_program_is_recorded_with_lines_although_its_profile_strips_it() {
    let workshop = package("cargo-run");
    let words = ["record", "-o", "run.mallow", "run", "--release", "--offline", "--", "100"];
    let ended = cargo_mallow(&workshop, &words).ended(Exit::Status(3));
    assert_eq!(traces(&workshop), ["run.mallow"], "{ended}");
    let (command, sites) = report(&workshop, "run.mallow");
    assert_eq!(command, "target/release/kept 100");
    let kept: Vec<String> =
        sites.iter().filter(|site| site["allocations"] == 100).map(Value::to_string).collect();
    assert_eq!(kept.len(), 1, "{ended}");
    for part in ["kept::keep", "src/lib.rs", "\"line\":6"] {
        assert!(kept[0].contains(part), "{part}: {kept:?}");
    }
}

#[test]
fn each_test_program_is_a_recording_of_its_own() {
    let workshop = package("cargo-test");
    let ended = cargo_mallow(&workshop, &["test", "--offline", "it_keeps"]).well();
    assert!(ended.stdout.contains("test it_keeps ... ok"), "{ended}");
    // The library's and the program's; the test is in the former.
    let traces = traces(&workshop);
    assert_eq!(traces.len(), 2, "{ended}");
    let has_test = |trace: &&String| {
        let (command, sites) = report(&workshop, trace);
        assert!(command.contains("/target/debug/deps/kept-"), "{command}");
        sites.iter().any(|site| site["allocations"] == 7 && site.to_string().contains("kept::keep"))
    };
    assert_eq!(traces.iter().filter(has_test).count(), 1, "{ended}");
}

#[test]
fn counts_are_mallows_and_the_status_is_the_programs() {
    let workshop = package("cargo-stat");
    let ended = cargo_mallow(&workshop, &["stat", "--runs", "2", "run", "--offline", "--", "100"]);
    let ended = ended.ended(Exit::Status(3));
    assert!(ended.stderr.contains("Counts were equal in all 2 runs."), "{ended}");
    assert_eq!(traces(&workshop), [""; 0]);
    let helped = cargo_mallow(&workshop, &["help"]).well();
    assert!(helped.stdout.starts_with("Usage: cargo mallow "), "{helped}");
}
