//! Comparison with independent tools: on real programs mallow agrees with valgrind's DHAT site by site and with
//! heaptrack's totals; if one of them is wrong, a small program shows it.

use e2e::program::{Program, build_text};
use e2e::run::{self, Exit, Finished};
use e2e::session::{json, metric};
use e2e::{Session, Workshop, dhat};
use serde_json::Value;
use std::path::Path;

/// Returns a session whose environment has PWD: valgrind's starter is a shell script, which would add it.
fn session(workshop: &Workshop, words: &[&str]) -> Session {
    Session::new(workshop.path(), words).env("PWD", &workshop.path().to_string_lossy())
}

const DHAT: [&str; 6] = [
    "--tool=dhat",
    "--dhat-out-file=dhat.out",
    "--num-callers=500",
    "--read-inline-info=no",
    "--run-libc-freeres=no",
    "--run-cxx-freeres=no",
];

fn under_dhat(session: &Session, workshop: &Workshop) -> (Finished, Value) {
    let finished = session.under(run::command("valgrind"), &DHAT).well();
    let text = std::fs::read_to_string(workshop.file("dhat.out")).unwrap();
    (finished, json(&text))
}

/// Asserts that totals and every site of DHAT equal those of mallow: blocks and bytes allocated, at the peak, and at
/// the end. Only stacks through the function `but` are left out, if it is given.
fn assert_dhat_agrees(session: &Session, workshop: &Workshop, allocations_min: u64, but: Option<&str>) {
    let (_, judge) = under_dhat(session, workshop);
    let recorded = session.record().well();
    let report = session.report(&["--realloc", "origin", "--native", "--no-default-suppressions"]);
    assert_eq!(report["processes"].as_array().unwrap().len(), 1, "{recorded}");
    let (mut judged, mut found) = (dhat::sites_of_dhat(&judge), dhat::sites_of_report(&report));
    assert_eq!(dhat::sum(&found), SITE_METRICS.map(|name| metric(&report["totals"], name)), "{recorded}");
    if let Some(but) = but {
        for sites in [&mut judged, &mut found] {
            sites.retain(|chain, _| chain.iter().all(|function| function != but));
        }
    }
    let differences = dhat::differences(&judged, &found);
    assert!(
        differences.is_empty(),
        "{} of {} sites differ\n{}\n{recorded}",
        differences.len(),
        judged.len(),
        differences[..differences.len().min(20)].join("\n")
    );
    assert_eq!(dhat::sum(&judged), dhat::sum(&found), "totals\n{recorded}");
    let [allocations, ..] = dhat::sum(&found);
    assert!(
        allocations >= allocations_min,
        "the program did too little: {allocations} allocations\n{recorded}"
    );
    println!("{}: {allocations} allocations at {} sites", session.words()[0], judged.len());
}

const SITE_METRICS: [&str; 6] =
    ["allocations", "bytes", "peak_blocks", "peak_bytes", "leaked_blocks", "leaked_bytes"];

/// Returns the calls that heaptrack counted, without the one of its own libstdc++ if the program has none.
fn assert_heaptrack_agrees(session: &Session, workshop: &Workshop, own_calls: u64) {
    let summary = heaptrack(session, workshop);
    let _ = session.record().well();
    let allocations = metric(&session.report(&[])["totals"], "allocations");
    assert_eq!(summary.calls - own_calls, allocations, "{} calls", session.words()[0]);
}

struct Heaptrack {
    calls: u64,
    peak: String,
    leaked: String,
}

fn heaptrack(session: &Session, workshop: &Workshop) -> Heaptrack {
    let _ = session.under(run::command("heaptrack"), &["-o", "judge"]).well();
    let name = workshop.names().into_iter().find(|name| name.starts_with("judge.")).unwrap();
    let mut print = run::command("heaptrack_print");
    let text = run::finish(print.arg("-f").arg(workshop.file(&name))).well().stdout;
    std::fs::remove_file(workshop.file(&name)).unwrap();
    let value = |label: &str| {
        let line = text.lines().rev().find_map(|line| line.strip_prefix(label));
        line.unwrap_or_else(|| panic!("heaptrack_print has no `{label}`\n{text}")).trim().to_owned()
    };
    let calls = value("calls to allocation functions:");
    Heaptrack {
        calls: calls.split(' ').next().unwrap().parse().unwrap(),
        peak: value("peak heap memory consumption:"),
        leaked: value("total memory leaked:"),
    }
}

/// C, with a shared library: sqlite3 builds the indexes of `programs/real/index.sql`, over fewer rows.
fn sqlite3(workshop: &Workshop) -> Session {
    let text = std::fs::read_to_string(e2e::repository().join("programs/real/index.sql")).unwrap();
    assert!(text.contains("n < 300000)"));
    let input = workshop.file("index.sql");
    std::fs::write(&input, text.replace("n < 300000)", "n < 3000)")).unwrap();
    session(workshop, &["/usr/bin/sqlite3", ":memory:"]).stdin(&input)
}

/// C++: GCC's compiler proper on a file without headers.
fn cc1plus(workshop: &Workshop) -> Session {
    let source = workshop.file("small.cpp");
    let text = "struct point { int x, y; point(int a) : x(a), y(a) {} int sum() const { return x + y; } };\n\
                static int total;\n\
                int add(int n) { for (int i = 0; i < n; i++) total += point(i).sum(); return total; }\n";
    std::fs::write(&source, text).unwrap();
    // The compiler resolves its output's path, which is longer once the file exists.
    std::fs::write(workshop.file("small.s"), "").unwrap();
    let compiler = run::finish(run::command("g++").arg("-print-prog-name=cc1plus")).well().stdout;
    session(workshop, &[compiler.trim(), "-quiet", "-O1", "small.cpp", "-o", "small.s"])
}

/// C++ with libstdc++ linked in: the gold linker.
fn gold(workshop: &Workshop) -> Session {
    let source = workshop.file("part.cpp");
    std::fs::write(&source, "#include <map>\n#include <string>\nstd::map<std::string, int> names;\n")
        .unwrap();
    let _ =
        run::finish(run::command("g++").arg("-c").arg(&source).arg("-o").arg(workshop.file("part.o"))).well();
    session(workshop, &["/usr/bin/ld.gold", "-r", "-o", "joined.o", "part.o"])
}

/// C++ with the shared libstdc++ and Boost.
fn heaptrack_print(workshop: &Workshop) -> Session {
    session(workshop, &["/usr/bin/heaptrack_print", "--help"])
}

/// An interpreter in C. Its own pool serves requests below 512 bytes, malloc the others.
fn python3(workshop: &Workshop) -> Session {
    let script = "print(len(sorted(bytes(513 + i) for i in range(5000))))";
    session(workshop, &["/usr/bin/python3", "-I", "-S", "-c", script])
}

/// C with few and large blocks.
fn sort(workshop: &Workshop) -> Session {
    let input = workshop.file("rows.txt");
    std::fs::write(
        &input,
        (0..20_000).map(|row| format!("{row},{}\n", row * 7919 % 1000)).collect::<String>(),
    )
    .unwrap();
    session(workshop, &["/usr/bin/sort", "--parallel=1", "-t,", "-k2n", "rows.txt"])
}

macro_rules! judged {
    ($name:ident, $at_least:expr, own heaptrack calls: $own:expr) => {
        mod $name {
            use super::*;

            #[test]
            fn dhat_agrees() {
                let workshop = Workshop::new(stringify!($name));
                assert_dhat_agrees(&super::$name(&workshop), &workshop, $at_least, None);
            }

            #[test]
            fn heaptrack_agrees() {
                let workshop = Workshop::new(concat!(stringify!($name), "-heaptrack"));
                assert_heaptrack_agrees(&super::$name(&workshop), &workshop, $own);
            }
        }
    };
}

judged!(sqlite3, 10_000, own heaptrack calls: 1);
judged!(gold, 1_000, own heaptrack calls: 1);
judged!(heaptrack_print, 500, own heaptrack calls: 0);
judged!(python3, 5_000, own heaptrack calls: 1);
judged!(sort, 10, own heaptrack calls: 1);

/// GCC's garbage collector makes a page table for each 4 GiB of addresses that its pages happen to be in: two to five
/// blocks more or less in every run, with and without an observer. Everything else is the same.
#[test]
fn dhat_agrees_on_cc1plus_outside_its_garbage_collector() {
    let workshop = Workshop::new("cc1plus");
    assert_dhat_agrees(&cc1plus(&workshop), &workshop, 5_000, Some("ggc_internal_alloc"));
}

fn small(workshop: &Workshop, name: &str, body: &str) -> Session {
    let text = format!(
        "#include <malloc.h>\n#include <stdlib.h>\nint main(void) {{\n    void *volatile p;\n{body}    \
         return p == &p;\n}}\n"
    );
    let program = build_text(workshop.path(), name, &text);
    session(workshop, &[&program.to_string_lossy()])
}

fn totals(session: &Session) -> [u64; 4] {
    let _ = session.record().well();
    let totals = session.report(&[])["totals"].clone();
    ["allocations", "bytes", "leaked_blocks", "leaked_bytes"].map(|name| metric(&totals, name))
}

#[test]
fn heaptrack_counts_its_own_72704_bytes_in_a_c_program() {
    let workshop = Workshop::new("own");
    let session = small(&workshop, "own", "    p = malloc(100);\n    free(p);\n");
    let judge = heaptrack(&session, &workshop);
    assert_eq!((judge.calls, judge.peak.as_str()), (2, "72.80K"), "one call and 72,704 bytes are its own");
    assert_eq!(totals(&session), [1, 100, 0, 0]);
}

#[test]
fn heaptrack_does_not_see_memalign_and_pvalloc() {
    let workshop = Workshop::new("memalign");
    let session = small(&workshop, "memalign", "    p = memalign(64, 100);\n    p = pvalloc(200);\n");
    let judge = heaptrack(&session, &workshop);
    assert_eq!((judge.calls, judge.leaked.as_str()), (1, "0B"), "the one call is its own");
    assert_eq!(totals(&session), [2, 300, 2, 300]);
}

#[test]
fn heaptrack_reports_what_realloc_0_freed_as_leaked() {
    let workshop = Workshop::new("realloc0");
    let session = small(&workshop, "realloc0", "    p = malloc(1000);\n    p = realloc(p, 0);\n");
    assert_eq!(heaptrack(&session, &workshop).leaked, "1000B");
    assert_eq!(totals(&session), [1, 1000, 0, 0]);
}

#[test]
fn dhat_counts_a_block_of_size_0_as_1_byte() {
    let workshop = Workshop::new("zero");
    let session = small(&workshop, "zero", "    p = malloc(0);\n    p = malloc(10);\n");
    let (_, judge) = under_dhat(&session, &workshop);
    assert_eq!(dhat::sum(&dhat::sites_of_dhat(&judge))[..2], [2, 11]);
    assert_eq!(totals(&session), [2, 10, 2, 10]);
}

#[test]
fn dhat_stops_at_pvalloc() {
    let workshop = Workshop::new("pvalloc");
    let session = small(&workshop, "pvalloc", "    p = pvalloc(200);\n    free(p);\n");
    let judged = session.under(run::command("valgrind"), &DHAT).ended(Exit::Status(1));
    assert!(judged.stderr.contains("aborting because of call to pvalloc"), "{judged}");
    assert_eq!(totals(&session), [1, 200, 0, 0]);
}

#[test]
fn dhat_books_realloc_on_the_first_site_and_so_can_mallow() {
    let workshop = Workshop::new("origin");
    let program = Program::load("realloc_chain").build(workshop.path(), &Value::Null);
    let session = session(&workshop, &[&program.to_string_lossy()]);
    let _ = session.record().well();
    let of_first_block = |arguments: &[&str]| {
        let report = session.report(arguments);
        let site = serde_json::json!({"function": "first_block"});
        let rows = e2e::stacks::of_site(&report, &site, Path::new(workshop.path()));
        ["allocations", "bytes"].map(|name| rows.iter().map(|row| metric(row, name)).sum::<u64>())
    };
    assert_eq!(of_first_block(&[]), [1, 1000]);
    assert_eq!(of_first_block(&["--realloc", "origin"]), [2, 3000]);
}
