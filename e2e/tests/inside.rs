//! Programs with `mallow-alloc`: recorded from inside, and under `record` and `stat`, on top of an allocator of their own.
//!
//! The programs are the examples of `inside/rust`, which `cargo test` builds beside the tests; alone: `cargo build -p mallow-alloc --examples`.

use e2e::run::{self, Exit, Finished};
use e2e::session::{json, metric, report_of};
use e2e::{Session, Workshop, stacks};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn example(name: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("debug/examples").join(name);
    assert!(program.is_file(), "{} is not built: cargo build -p mallow-alloc --examples", program.display());
    program
}

fn run(workshop: &Workshop, name: &str, words: &[&str]) -> Finished {
    run::finish(run::command(example(name)).args(words).current_dir(workshop.path()))
}

fn report(workshop: &Workshop, trace: &str) -> Value {
    json(&report_of(&workshop.file(trace), &[]).well().stdout)
}

/// Returns allocations, bytes, frees.
fn sums(report: &Value) -> [u64; 3] {
    ["allocations", "bytes", "frees"].map(|name| metric(&report["totals"], name))
}

/// Returns the allocations of sites with a function on their stack.
fn through(report: &Value, function: &str) -> u64 {
    let sites = report["sites"].as_array().unwrap().iter();
    let frames =
        |site: &Value| site["frames"].as_array().unwrap().iter().any(|frame| frame["function"] == function);
    sites.filter(|site| frames(site)).map(|site| metric(site, "allocations")).sum()
}

#[test]
fn a_profile_from_inside_has_the_programs_own_metrics_and_lines() {
    let workshop = Workshop::new("inside-rows");
    // 1,000 blocks of 100 bytes, freed at once; a vector of ten vectors of 24 bytes, and ten blocks of 64, kept,
    // inside of a region. `stats` is read before the lines are printed; the buffer of the standard output comes after
    // it.
    let said = run(&workshop, "inside-rows", &["rows.mallow"]).well();
    assert_eq!(said.stdout, "1011 100880 880 11\n11 880 880 11\n", "{said}");
    let report = report(&workshop, "rows.mallow");
    assert_eq!(sums(&report), [1012, 100_880 + 1024, 1001]);
    assert_eq!(report["complete"], true, "{said}");
    assert_eq!(report["processes"][0]["exit"], serde_json::json!({"goes_on": true}));
    assert_eq!(through(&report, "inside_rows::row"), 1010);
    let text = run::finish(run::mallow().arg("report").arg(workshop.file("rows.mallow"))).well();
    let source =
        std::fs::read_to_string(e2e::repository().join("inside/rust/examples/inside-rows.rs")).unwrap();
    let line = 1 + source.lines().position(|line| line.contains("vec![7; bytes]")).unwrap();
    assert!(text.stdout.contains(&format!("inside_rows::row (inside-rows.rs:{line})")), "{text}");
    assert!(text.stdout.contains("recorded itself after"), "{text}");
    for command in ["flamegraph", "diff"] {
        let mut words = run::mallow();
        words.arg(command).arg(workshop.file("rows.mallow"));
        match command {
            "diff" => words.arg(workshop.file("rows.mallow")),
            _ => words.arg("-o").arg(workshop.file("rows.svg")),
        };
        let _ = run::finish(&mut words).well();
    }
}

#[test]
fn a_profile_in_dhats_format_is_read_by_its_importer_and_has_the_same_sums() {
    let workshop = Workshop::new("inside-dhat");
    let _ = run(&workshop, "inside-rows", &["rows.json", "dhat"]).well();
    let dhat = json(&std::fs::read_to_string(workshop.file("rows.json")).unwrap());
    assert_eq!(dhat["dhatFileVersion"], 2);
    let [allocations, bytes, _] = sums(&report(&workshop, "rows.json"));
    assert_eq!([allocations, bytes], [1012, 100_880 + 1024]);
}

/// Runs `inside-ends` in one of its modes; returns the report of its trace.
fn ends(workshop: &Workshop, way: &str, exit: Exit) -> Value {
    let _ = run(workshop, "inside-ends", &["ends.mallow", way]).ended(exit);
    report(workshop, "ends.mallow")
}

fn of_allocate(report: &Value) -> u64 {
    through(report, "inside_ends::allocate")
}

#[test]
fn a_profile_is_complete_however_the_program_returns_exits_or_panics() {
    for (way, exit) in
        [("returns", Exit::Status(0)), ("exits", Exit::Status(3)), ("panics", Exit::Status(101))]
    {
        let workshop = Workshop::new("inside-ends");
        let report = ends(&workshop, way, exit);
        assert_eq!((of_allocate(&report), &report["complete"]), (500, &Value::Bool(true)), "{way}");
    }
}

/// Meanwhile names are looked up on a separate thread, which is not part of the profile.
#[test]
fn a_profile_has_its_names_and_nothing_of_those_who_looked_them_up() {
    let workshop = Workshop::new("inside-long");
    let said = run(&workshop, "inside-ends", &["ends.mallow", "long"]).well();
    assert_eq!(said.stdout, "inside-ends\nmallow\nmallow-names\n1\n", "{said}");
    let report = report(&workshop, "ends.mallow");
    assert_eq!(of_allocate(&report), 500);
    let sites = report["sites"].as_array().unwrap();
    let of_main = |site: &&Value| stacks::names(site).iter().any(|name| name == "inside_ends::main");
    assert_eq!(sites.iter().filter(of_main).count(), sites.len(), "{report:#}");
    let of_libc = |site: &&Value| stacks::names(site).iter().any(|name| name.starts_with("__libc_start_"));
    assert_eq!(sites.iter().filter(of_libc).count(), sites.len(), "{report:#}");
    assert!(report["threads"].as_array().is_none_or(|threads| threads.len() == 1), "{report:#}");
}

#[test]
fn of_a_program_that_is_killed_what_was_written_is_read_and_its_end_is_missed() {
    let workshop = Workshop::new("inside-killed");
    let report = ends(&workshop, "killed", Exit::Signal(9));
    assert_eq!((of_allocate(&report), &report["complete"]), (500, &Value::Bool(false)));
    let text = report["warnings"].to_string();
    assert!(text.contains("the trace ends early"), "{text}");
}

#[test]
fn a_forked_childs_doings_are_not_its_parents_and_it_may_have_a_profile_of_its_own() {
    let workshop = Workshop::new("inside-forks");
    let report_of_parent = ends(&workshop, "forks", Exit::Status(0));
    assert_eq!((of_allocate(&report_of_parent), &report_of_parent["complete"]), (570, &Value::Bool(true)));
    let report_of_parent = ends(&workshop, "fork-profiles", Exit::Status(0));
    assert_eq!(of_allocate(&report_of_parent), 570);
    let report_of_child = report(&workshop, "ends.mallow.child");
    assert_eq!((of_allocate(&report_of_child), &report_of_child["complete"]), (33, &Value::Bool(true)));
}

#[test]
fn profiles_follow_each_other_and_a_second_one_at_a_time_is_refused() {
    let workshop = Workshop::new("inside-again");
    assert_eq!(of_allocate(&ends(&workshop, "again", Exit::Status(0))), 500);
    let second = report(&workshop, "ends.mallow.second");
    assert_eq!((sums(&second), &second["complete"]), ([7, 168, 7], &Value::Bool(true)));
    let twice = Workshop::new("inside-twice");
    let said = run(&twice, "inside-ends", &["ends.mallow", "twice"]).well();
    assert!(said.stderr.contains("this process is being recorded from inside already"), "{said}");
    assert_eq!(of_allocate(&report(&twice, "ends.mallow")), 511);
    assert_eq!(twice.names(), ["ends.mallow"]);
}

#[test]
fn a_file_that_cannot_be_written_costs_the_profile_and_not_the_program() {
    let workshop = Workshop::new("inside-nowhere");
    let said = run(&workshop, "inside-ends", &["nowhere/ends.mallow", "returns"]).well();
    assert!(said.stderr.contains("cannot write the trace 'nowhere/ends.mallow'"), "{said}");
    assert_eq!(workshop.names(), [""; 0]);
}

/// Returns what the program counted itself: allocations, bytes, reallocations, frees.
fn own_metrics(said: &Finished) -> [u64; 4] {
    let line = said.stdout.trim().trim_matches(['[', ']']);
    let metrics: Vec<u64> = line.split(", ").map(|word| word.parse().unwrap()).collect();
    metrics.try_into().unwrap()
}

/// A call of the program's own allocator is one event, although it takes its large blocks from libc. libc's other
/// callers are seen as well: the bookkeeping of threads, the standard output.
#[test]
fn under_record_each_call_of_a_programs_own_allocator_is_one_event() {
    let workshop = Workshop::new("inside-below");
    let program = example("inside-below");
    let session = Session::new(workshop.path(), &[program.to_str().unwrap()]);
    let recorded = session.record().well();
    let [allocations, bytes, reallocations, frees] = own_metrics(&recorded);
    let report = session.report(&[]);
    let (mut of_own, mut of_libc) = ([0; 3], 0);
    for site in report["sites"].as_array().unwrap() {
        let frames = site["frames"].to_string();
        if frames.contains("inside/rust/src/hooks.rs") {
            for (sum, name) in of_own.iter_mut().zip(["allocations", "bytes", "reallocations"]) {
                *sum += metric(site, name);
            }
        } else {
            of_libc += metric(site, "allocations");
        }
    }
    // What is allocated while the line is printed comes after the count.
    assert_eq!(of_own[0], allocations + of_own[0].saturating_sub(allocations).min(1), "{recorded}");
    assert_eq!(of_own[2], reallocations, "{recorded}");
    assert!(of_own[1] - bytes <= 1024 && of_libc < 100, "{of_own:?} {bytes} {of_libc}\n{recorded}");
    assert!(metric(&report["totals"], "frees") >= frees, "{recorded}");
    assert_eq!(report["complete"], true, "{recorded}");

    let (counted, stat) = session.stat();
    let counted = counted.well();
    let totals = &stat["runs"][0]["totals"];
    assert_eq!(metric(totals, "allocations"), metric(&report["totals"], "allocations"), "{counted}");
    assert_eq!(metric(totals, "bytes"), metric(&report["totals"], "bytes"), "{counted}");
}

#[test]
fn under_record_a_profile_from_inside_stands_back_and_says_so() {
    let workshop = Workshop::new("inside-outside");
    let program = example("inside-rows");
    let session = Session::new(workshop.path(), &[program.to_str().unwrap(), "rows.mallow"]);
    let said = session.record().ended(Exit::Status(2));
    assert!(said.stderr.contains("records it from outside; 'rows.mallow' is not written"), "{said}");
    assert!(!workshop.file("rows.mallow").exists());
}
