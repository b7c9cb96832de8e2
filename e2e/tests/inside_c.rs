//! Programs in C and C++ with `libmallow_inside.a`: a profile from inside has what their sources state, and what
//! `record` has for the same program without the library.
//!
//! The library is an example of `inside/c`, which `cargo test` builds beside the tests; alone: `cargo build -p mallow-inside --examples`.

use e2e::program::Program;
use e2e::run::{self, Finished};
use e2e::session::{json, metric, report_of};
use e2e::{Session, Workshop, expected};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

fn library() -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("debug/examples");
    let library = folder.join("libmallow_inside_tested.a");
    assert!(library.is_file(), "{} is not built: cargo build -p mallow-inside --examples", library.display());
    library.to_str().unwrap().to_owned()
}

fn header_folder() -> String {
    format!("-I{}", e2e::repository().join("inside/c/include").display())
}

/// A part of a program that records what its `main` does; `main` itself is unchanged.
const RECORDS: &str = r#"#include "mallow_inside.h"
#ifdef __cplusplus
extern "C" {
#endif
int __real_main(int count, char **words, char **environment);
int __wrap_main(int count, char **words, char **environment);
#ifdef __cplusplus
}
#endif
int __wrap_main(int count, char **words, char **environment) {
    int status;
    mallow_profile_begin("inside.mallow");
    status = __real_main(count, words, environment);
    mallow_profile_end();
    return status;
}
"#;

/// Returns the compiler flags that add that part and the library to a program.
fn recording(workshop: &Workshop) -> Value {
    let records = workshop.file("records.c");
    std::fs::write(&records, RECORDS).unwrap();
    json!(["-Wl,--wrap=main", header_folder(), records, library()])
}

/// Builds a hazard program with the library and that part, and runs it; returns the report of its trace.
fn from_inside(program: &Program, workshop: &Workshop) -> Value {
    let path = program.build(workshop.path(), &recording(workshop));
    let words = program.words(&path);
    let mut command = run::command(&words[0]);
    let said = run::finish(command.args(&words[1..]).current_dir(workshop.path())).well();
    let report = json(&report_of(&workshop.file("inside.mallow"), &[]).well().stdout);
    assert_eq!(report["complete"], true, "{said}");
    report
}

/// Returns what libstdc++ allocates before `main`: its pool for exceptions.
fn before_main(program: &Program) -> [(&'static str, u64); 6] {
    let is_cxx = program.stated["build"][0] == "c++";
    let (blocks, bytes) = if is_cxx { (1, 72_704) } else { (0, 0) };
    [
        ("allocations", blocks),
        ("bytes", bytes),
        ("peak_blocks", blocks),
        ("peak_bytes", bytes),
        ("leaked_blocks", blocks),
        ("leaked_bytes", bytes),
    ]
}

/// Compares one of `programs/hazards` with its source and with `record`.
fn holds(name: &str) {
    let program = Program::load(name);
    let inside = Workshop::new(&format!("inside-c-{name}"));
    let report = from_inside(&program, &inside);
    let outside = Workshop::new(&format!("inside-c-{name}-recorded"));
    let path = program.build(outside.path(), &json!([]));
    let words = program.words(&path);
    let session = Session::new(outside.path(), &words.iter().map(String::as_str).collect::<Vec<_>>());
    let _ = session.record().well();
    let recorded = session.report(&[])["totals"].clone();
    let mut stated = program.stated["processes"][0]["totals"].clone();
    let mut differences = Vec::new();
    expected::of_metrics("recorded", &stated, &recorded, &mut differences);
    for (key, more) in before_main(&program) {
        if let Some(value) = stated[key].as_u64() {
            stated[key] = json!(value - more);
        }
    }
    expected::of_metrics(name, &stated, &report["totals"], &mut differences);
    let sites = program.stated["sites"].as_array().unwrap();
    differences.extend(expected::of_sites(&report, sites, &inside.file(name)));
    assert_eq!(differences, [""; 0], "{name}");
}

#[test]
fn every_function_of_cs_family_counts_as_under_record() {
    holds("family");
    holds("failed_and_zero");
}

#[test]
fn every_operator_of_cxx_counts_as_under_record() {
    holds("family_cxx");
}

#[test]
fn threads_exceptions_and_jumps_count_as_under_record() {
    holds("thread_churn");
    holds("cxx_exceptions");
    holds("longjmp_out");
}

/// Uses every function of the header, in C and in C++. What `work` does, by the structure's members, of which only
/// the two that are 4 blocks are equal: allocations 6; bytes 10 + 20 + 40 + 80 + 160 + 320 = 630; 1 reallocation,
/// from 80 to 160. The blocks of 10, 80 and 320 are freed before the next call: 3 temporary. The peak is when 320
/// comes: 20 + 40 + 160 + 320 = 540 in 4 blocks; live are 220 in 3. `shared` makes it one of 7 more.
const USES: &str = r#"#include "mallow_inside.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void *volatile kept[8];
static void work(void) {
    kept[0] = malloc(10); free(kept[0]);
    kept[1] = malloc(20);
    kept[2] = calloc(4, 10);
    kept[3] = malloc(80);
    kept[3] = realloc(kept[3], 160);
    kept[4] = malloc(320);
    free(kept[4]);
}
static void shared(void *context) { *(void **)context = malloc(7); }
static void print(const char *name, struct mallow_stats s) {
    fprintf(stderr, "%s %d %d %d %d %d %d %d %d\n", name, (int)s.allocations, (int)s.bytes, (int)s.reallocations, (int)s.temporary, (int)s.peak_bytes,
            (int)s.peak_blocks, (int)s.live_bytes, (int)s.live_blocks);
}
int main(int count, char **words) {
    struct mallow_stats stats;
    struct mallow_scope *scope;
    void *more = NULL;
    int is_dhat = count > 2 && strcmp(words[2], "dhat") == 0;
    memset(&stats, 0, sizeof stats);
    if (mallow_profile_end() != -1 || mallow_profile_stats(&stats) != -1) return 10;
    if ((is_dhat ? mallow_profile_begin_dhat(words[1]) : mallow_profile_begin(words[1])) != 0) return 2;
    scope = mallow_scope_begin();
    work();
    if (mallow_scope_stats(scope, &stats) != 0) return 11;
    print("scope", stats);
    if (mallow_scope_check(scope, "allocations==6") != 0) return 12;
    mallow_scope_run(scope, shared, &more);
    if (mallow_scope_check(scope, "bytes<=630") != -1) return 13;
    if (mallow_scope_stats(scope, &stats) != -1) return 14;
    mallow_scope_end(scope);
    if (mallow_profile_stats(&stats) != 0) return 15;
    print("profile", stats);
    if (mallow_profile_begin("second.mallow") != -1) return 16;
    if (mallow_profile_end() != 0 || mallow_profile_end() != -1) return 17;
    mallow_scope_end(NULL);
    return more == NULL;
}
"#;

const STRICT: [&str; 6] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-g"];

fn built(workshop: &Workshop, name: &str, source: &str, words: &[&str], libraries: &[&str]) -> PathBuf {
    let file = workshop.file(&format!("{name}.{}", if words[0] == "cc" { "c" } else { "cpp" }));
    std::fs::write(&file, source).unwrap();
    let mut compiler = run::command(words[0]);
    compiler
        .args(&words[1..])
        .args(STRICT)
        .arg(header_folder())
        .arg(&file)
        .arg("-o")
        .arg(workshop.file(name));
    let _ = run::finish(compiler.args(libraries)).well();
    workshop.file(name)
}

fn run_in(workshop: &Workshop, program: &Path, words: &[&str]) -> Finished {
    run::finish(run::command(program).args(words).current_dir(workshop.path()))
}

#[test]
fn the_header_is_c_and_cxx_and_says_what_the_library_does() {
    for (language, words) in
        [("c", &["cc", "-std=c99"][..]), ("cxx", &["c++", "-std=c++98", "-Wno-long-long"])]
    {
        let workshop = Workshop::new(&format!("inside-c-header-{language}"));
        let program = built(&workshop, "uses", USES, words, &[&library()]);
        let said = run_in(&workshop, &program, &["uses.mallow"]).well();
        let lines: Vec<&str> = said.stderr.lines().collect();
        assert_eq!(lines[0], "scope 6 630 1 3 540 4 220 3", "{said}");
        assert!(said.stderr.contains("\nprofile 7 637 1 3 540 4 227 4\n"), "{said}");
        assert!(said.stderr.contains("mallow: bytes: 637, and the limit is at most 630\n"), "{said}");
        let is_told = |function: &&str| said.stderr.contains(&format!("\n    {function}"));
        assert!(["work", "shared"].iter().all(is_told), "{said}");
        assert!(said.stderr.contains("this process is being recorded from inside already"), "{said}");
        let report = json(&report_of(&workshop.file("uses.mallow"), &[]).well().stdout);
        assert_eq!(["allocations", "bytes", "frees"].map(|key| metric(&report["totals"], key)), [7, 637, 3]);
        let empty = [words, &["-DMALLOW_INSIDE_OFF"]].concat();
        let said = run_in(&workshop, &built(&workshop, "off", USES, &empty, &[]), &["off.mallow"]);
        assert_eq!(
            (said.exit, workshop.file("off.mallow").exists()),
            (run::Exit::Status(2), false),
            "{said}"
        );
    }
}

#[test]
fn a_profile_for_dh_view_has_the_same_sums() {
    let workshop = Workshop::new("inside-c-dhat");
    let program = built(&workshop, "uses", USES, &["cc", "-std=c99"], &[&library()]);
    let _ = run_in(&workshop, &program, &["uses.json", "dhat"]).well();
    assert_eq!(json(&std::fs::read_to_string(workshop.file("uses.json")).unwrap())["dhatFileVersion"], 2);
    let report = json(&report_of(&workshop.file("uses.json"), &[]).well().stdout);
    assert_eq!(["allocations", "bytes"].map(|key| metric(&report["totals"], key)), [7, 637]);
}

#[test]
fn under_record_the_library_stands_back_and_the_program_is_the_one_without_it() {
    let program = Program::load("family");
    let recorded = |with: &Value, folder: &str| {
        let workshop = Workshop::new(folder);
        let path = program.build(workshop.path(), with);
        let session = Session::new(workshop.path(), &[path.to_str().unwrap()]);
        let said = session.record().well();
        let (counted, stat) = session.stat();
        let _ = counted.well();
        let sites =
            expected::of_sites(&session.report(&[]), program.stated["sites"].as_array().unwrap(), &path);
        assert_eq!(sites, [""; 0], "{said}");
        assert!(!workshop.file("inside.mallow").exists());
        (said, session.report(&[])["totals"].clone(), stat["runs"][0]["totals"].clone())
    };
    let folder = Workshop::new("inside-c-records");
    let (said, report, stat) = recorded(&recording(&folder), "inside-c-outside");
    assert!(said.stderr.contains("records it from outside; 'inside.mallow' is not written"), "{said}");
    let (_, report_without, stat_without) = recorded(&json!([]), "inside-c-without");
    assert_eq!((report, stat), (report_without, stat_without));
}

/// Fails, calls its handler, which gives up the second time, and catches the exception.
const FAILS: &str = r#"#include "mallow_inside.h"
#include <cstdio>
#include <new>
#include <string>
static int asked;
static void handler() { if (++asked % 2 == 0) std::set_new_handler(0); }
int main() {
    volatile std::size_t huge = (std::size_t)1 << 47;
    int caught = 0;
    if (mallow_profile_begin("fails.mallow") != 0) return 10;
    for (int i = 0; i < 10; i++) {
        std::set_new_handler(handler);
        try { delete[] new char[huge]; } catch (std::bad_alloc &) { caught++; }
        char *volatile block = new char[100];
        delete[] block;
    }
    if (mallow_profile_end() != 0) return 11;
    std::printf("caught %d asked %d\n", caught, asked);
}
"#;

#[test]
fn an_operator_that_fails_asks_the_programs_handler_and_throws_with_either_libstdcxx() {
    for (name, words) in [("dynamic", &["c++"][..]), ("static", &["c++", "-static-libstdc++"])] {
        let workshop = Workshop::new(&format!("inside-c-fails-{name}"));
        let program = built(&workshop, "fails", FAILS, words, &[&library()]);
        let said = run_in(&workshop, &program, &[]).well();
        assert_eq!(said.stdout, "caught 10 asked 20\n", "{said}");
        let report = json(&report_of(&workshop.file("fails.mallow"), &[]).well().stdout);
        let sites = report["sites"].as_array().unwrap().iter();
        let of_blocks: Vec<&Value> = sites.filter(|site| metric(site, "bytes") == 1000).collect();
        assert_eq!(of_blocks.iter().map(|site| metric(site, "allocations")).sum::<u64>(), 10, "{report:#}");
    }
}
