//! Static programs with `mallow-alloc`, linked with glibc and with musl: nothing can be preloaded into them, and the
//! linked-in recorder serves `record`, `stat` and `check`.

use e2e::run::{self, Exit};
use e2e::session::metric;
use e2e::{Session, Workshop};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds `programs/inside` for a target, with linker flags, once for all tests, outside of the repository.
fn built(workshop: &Workshop, target: &str, flags: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("inside");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--quiet", "--bin", "counted", "--target", target]);
    cargo.arg("--target-dir").arg(&folder).env("RUSTFLAGS", flags);
    let _ = run::finish(cargo.current_dir(e2e::repository().join("programs/inside"))).well();
    let program = workshop.file("counted");
    std::fs::copy(folder.join(target).join("debug/counted"), &program).unwrap();
    program
}

fn musl(workshop: &Workshop) -> PathBuf {
    built(workshop, "x86_64-unknown-linux-musl", "")
}

const NAMES: [&str; 4] = ["allocations", "bytes", "reallocations", "frees"];

/// Returns what the program reports of itself: allocations, bytes, reallocations, frees.
fn own_metrics(stderr: &str, who: &str) -> [u64; 4] {
    let line = stderr.lines().find_map(|line| line.strip_prefix(who)?.strip_prefix(' '));
    let words: Vec<u64> = line.unwrap().split(' ').map(|word| word.parse().unwrap()).collect();
    words.try_into().unwrap()
}

/// The program reports before it returns from `main`; what libc and std free after that is seen as well.
#[track_caller]
fn are_the_same(totals: &Value, own: [u64; 4]) {
    let [allocations, bytes, reallocations, frees] = NAMES.map(|name| metric(totals, name));
    assert_eq!([allocations, bytes, reallocations], own[..3], "{totals:#}");
    assert!((own[3]..own[3] + 2).contains(&frees), "{own:?}: {totals:#}");
}

/// Returns the number and the bytes of the allocations with these functions on their stacks, one within the other, with `main` outermost.
fn through(report: &Value, functions: &[&str]) -> [u64; 2] {
    let mut sums = [0; 2];
    for site in report["sites"].as_array().unwrap() {
        let frames = site["frames"].as_array().unwrap();
        let mut names = frames.iter().map(|frame| frame["function"].as_str().unwrap());
        if functions.iter().all(|function| names.any(|name| name == *function)) {
            sums[0] += metric(site, "allocations");
            sums[1] += metric(site, "bytes");
        }
    }
    sums
}

#[track_caller]
fn is_recorded_exactly(program: &Path, workshop: &Workshop) {
    let session = Session::new(workshop.path(), &[program.to_str().unwrap()]);
    let recorded = session.record().well();
    let report = session.report(&[]);
    are_the_same(&report["totals"], own_metrics(&recorded.stderr, "program"));
    // Four threads, and the main one.
    assert_eq!(through(&report, &["counted::row", "counted::rows"]), [12_000, 4000 * 4260]);
    assert_eq!(through(&report, &["counted::grown", "counted::work", "counted::main"]), [800, 100 * 2040]);
    assert_eq!(report["complete"], true, "{recorded}");
    assert_eq!(report["processes"][0]["exit"], 0);
    assert!(
        recorded.stderr.contains("is a static program that is recorded by the mallow-alloc in it"),
        "{recorded}"
    );

    let (counted, stat) = session.stat();
    let counted = counted.well();
    are_the_same(&stat["runs"][0]["totals"], own_metrics(&counted.stderr, "program"));
}

#[test]
fn a_static_program_of_musl_is_recorded_to_the_call_and_with_whole_stacks() {
    let workshop = Workshop::new("inside-musl");
    let program = musl(&workshop);
    is_recorded_exactly(&program, &workshop);
    // The loaded recorder identifies itself: names are not needed for that.
    let stripped = workshop.file("stripped");
    let _ = run::finish(run::command("strip").arg("-o").arg(&stripped).arg(&program)).well();
    let session = Session::new(workshop.path(), &[stripped.to_str().unwrap()]);
    let recorded = session.record().well();
    let allocations = metric(&session.report(&[])["totals"], "allocations");
    assert_eq!(allocations, own_metrics(&recorded.stderr, "program")[0]);
}

#[test]
#[ignore = "builds the recorder twice more: in `cargo xtask long`"]
fn so_is_one_that_is_not_relocated_and_one_of_glibc() {
    let workshop = Workshop::new("inside-static");
    for (target, flags) in [
        ("x86_64-unknown-linux-musl", "-Crelocation-model=static"),
        ("x86_64-unknown-linux-gnu", "-Ctarget-feature=+crt-static"),
    ] {
        is_recorded_exactly(&built(&workshop, target, flags), &workshop);
    }
}

#[test]
fn a_forked_child_of_a_static_program_is_a_process_of_its_own() {
    let workshop = Workshop::new("inside-static-fork");
    let program = musl(&workshop);
    let session = Session::new(workshop.path(), &[program.to_str().unwrap(), "fork"]);
    let recorded = session.record().well();
    let report = session.report(&[]);
    let processes = report["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 2, "{recorded}");
    let metrics = |who: &str| own_metrics(&recorded.stderr, who);
    for (process, who) in processes.iter().zip(["program", "child"]) {
        are_the_same(&process["totals"], metrics(who));
    }
}

/// Starts it as a child of the shell too: the environment leads it to mallow.
#[test]
fn it_is_found_behind_a_shell_and_goes_its_way_without_mallow() {
    let workshop = Workshop::new("inside-static-shell");
    let program = musl(&workshop);
    let line = format!("{0} && {0}", program.display());
    let session = Session::new(workshop.path(), &["sh", "-c", &line]);
    let recorded = session.record().well();
    let report = session.report(&[]);
    let own = report["processes"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|process| metric(&process["totals"], "allocations") > 12_000);
    assert_eq!(own.count(), 2, "{recorded}");
    assert_eq!(report["complete"], true, "{recorded}");

    // A session whose collector is gone, and invalid ones.
    for value in ["mallow-1-00:00112233445566778899aabbccddeeff", "x", ""] {
        let said = run::finish(run::command(program.to_str().unwrap()).env("MALLOW_SESSION", value)).well();
        assert!(own_metrics(&said.stderr, "program")[0] > 12_000);
    }
}

#[test]
fn one_with_another_version_of_the_recorder_is_a_static_program_like_any_other() {
    let workshop = Workshop::new("inside-static-version");
    let program = musl(&workshop);
    let mut bytes = std::fs::read(&program).unwrap();
    let note = [7u32.to_le_bytes(), 4u32.to_le_bytes(), 1u32.to_le_bytes(), *b"mall", *b"ow\0\0"].concat();
    let at = bytes.windows(note.len()).position(|bytes| bytes == note).unwrap() + note.len();
    let session = Session::new(workshop.path(), &[program.to_str().unwrap()]);
    // Without the note, as far as its name is another's.
    bytes[at - 4] ^= 0x40;
    std::fs::write(&program, &bytes).unwrap();
    let recorded = session.record().well();
    assert_eq!(session.report(&[])["processes"].as_array().unwrap().len(), 1, "{recorded}");
    bytes[at - 4] ^= 0x40;
    bytes[at] ^= 0x40;
    std::fs::write(&program, bytes).unwrap();
    // It is found by its functions' names: libc's own allocations are seen as well.
    let recorded = session.record().well();
    let [own, ..] = own_metrics(&recorded.stderr, "program");
    let report = session.report(&[]);
    assert!(metric(&report["totals"], "allocations") > own, "{recorded}");
    // The recorder that is linked in leaves it to the one that was written into the program.
    assert_eq!(report["processes"].as_array().unwrap().len(), 1, "{recorded}");
    assert!(!recorded.stderr.contains("by the mallow-alloc in it"), "{recorded}");
    // Without names nothing is found.
    let _ = run::finish(run::command("strip").arg(&program)).well();
    let said = session.record().ended(Exit::Status(125));
    assert!(said.stderr.contains("put the crate mallow-alloc of this version in it"), "{said}");
    assert!(said.stderr.lines().count() == 1, "{said}");
}
