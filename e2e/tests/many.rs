//! Large numbers: processes, threads, frames, libraries. Counts are exact and mallow stays small; its cost is
//! printed:
//! `MALLOW_BIN=FILE/mallow cargo test -p e2e --test all -- --ignored --nocapture many::`.

use e2e::program::{Program, build_text};
use e2e::run::{self, Exit};
use e2e::session::metric;
use e2e::{Session, Workshop};
use serde_json::Value;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

const MEGABYTES_MAX: u64 = 200;
/// For a million stacks: 128 bytes for the sums of each, the same again at the end, and the table of stacks that the program shares.
const MEGABYTES_MAX_MANY_STACKS: u64 = 500;

/// Runs a program bare and recorded, and prints how long both took, in seconds, and how large mallow became, in MB.
fn measured(name: &str, workshop: &Workshop, words: &[&str], megabytes_max: u64) -> Value {
    let session = Session::new(workshop.path(), words);
    let began = Instant::now();
    let _ = session.bare().well();
    let bare_s = began.elapsed().as_secs_f64();
    let mut mallow = run::mallow();
    mallow.args(["record", "--force", "-o"]).arg(session.trace()).arg("--").args(words);
    mallow.current_dir(workshop.path()).stdout(Stdio::null());
    let began = Instant::now();
    let mut child = mallow.stderr(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut kilobytes = 0;
    let exit = loop {
        if let Some(exit) = child.try_wait().unwrap() {
            break exit;
        }
        let text = fs::read_to_string(&status).unwrap_or_default();
        let highest = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next());
        kilobytes = highest.and_then(|number| number.parse().ok()).unwrap_or(0).max(kilobytes);
        std::thread::sleep(Duration::from_millis(2));
    };
    let (recorded_s, megabytes): (_, u64) = (began.elapsed().as_secs_f64(), kilobytes / 1000);
    assert_eq!(Exit::from(exit), Exit::Status(0));
    let bar_s = 2.0 * bare_s + 0.5;
    println!(
        "{name}: bare {bare_s:.2} s, recorded {recorded_s:.2} s (2 x bare + 0.5 s: {bar_s:.2} s), mallow {megabytes} MB"
    );
    assert!(megabytes <= megabytes_max, "{name}: mallow took {megabytes} MB");
    session.report(&["--limit", "5"])
}

fn totals(report: &Value) -> [u64; 2] {
    ["allocations", "frees"].map(|name| metric(&report["totals"], name))
}

#[test]
#[ignore = "for its times: in `cargo xtask long`"]
fn three_thousand_threads_that_live_at_once() {
    let workshop = Workshop::new("threads");
    let text = "#include <pthread.h>\n#include <stdlib.h>\n#define THREADS 3000\nstatic pthread_barrier_t all;\n\
        __attribute__((noinline)) static void work(void) {\n    void *volatile blocks[10];\n\
        \x20   for (int i = 0; i < 10; i++) blocks[i] = malloc(24);\n    pthread_barrier_wait(&all);\n\
        \x20   for (int i = 0; i < 10; i++) free(blocks[i]);\n}\n\
        static void *run(void *unused) { work(); return unused; }\n\
        int main(void) {\n    static pthread_t threads[THREADS];\n    pthread_barrier_init(&all, NULL, THREADS);\n\
        \x20   for (int i = 0; i < THREADS; i++) if (pthread_create(&threads[i], NULL, run, NULL) != 0) return 3;\n\
        \x20   for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);\n    return 0;\n}\n";
    let program = build_text(workshop.path(), "threads", text);
    let report = measured("3,000 live threads", &workshop, &[&program.to_string_lossy()], MEGABYTES_MAX);
    assert_eq!(report["complete"], true, "{}", report["warnings"]);
    let rows = report["sites"].as_array().unwrap().iter();
    let own: Vec<&Value> = rows.filter(|row| row["frames"][0]["function"] == "work").collect();
    let sum = |name: &str| own.iter().map(|row| metric(row, name)).sum::<u64>();
    assert_eq!([sum("allocations"), sum("leaked_blocks"), sum("peak_blocks")], [30_000, 0, 30_000]);
}

#[test]
#[ignore = "for its times: in `cargo xtask long`"]
fn a_thousand_forked_processes() {
    let workshop = Workshop::new("forks");
    let text = "#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\nint main(void) {\n\
        \x20   for (int i = 0; i < 1000; i++) {\n        pid_t child = fork();\n        if (child == 0) {\n\
        \x20           for (int j = 0; j < 1000; j++) { void *volatile block = malloc(10); if (j % 2) free(block); }\n\
        \x20           _exit(0);\n        }\n        waitpid(child, NULL, 0);\n    }\n    return 0;\n}\n";
    let program = build_text(workshop.path(), "forks", text);
    let report = measured("1,000 forked processes", &workshop, &[&program.to_string_lossy()], MEGABYTES_MAX);
    assert_eq!(report["processes"].as_array().unwrap().len(), 1_001);
    assert_eq!(totals(&report), [1_000_000, 500_000]);
}

#[test]
#[ignore = "for its times: in `cargo xtask long`"]
fn a_million_stacks_of_up_to_twenty_thousand_frames() {
    let workshop = Workshop::new("stacks");
    let text = fs::read_to_string(e2e::repository().join("programs/hazards/deep_stacks.c")).unwrap();
    fs::copy(e2e::repository().join("programs/hazards/hazard.h"), workshop.file("hazard.h")).unwrap();
    let program = build_text(workshop.path(), "deep", &text);
    let program = program.to_string_lossy();
    // Each call compares all frames with those of the call before, so both take time; the many may take twice as long as the few.
    for (name, words, megabytes_max) in [
        ("20,000 stacks of up to 20,000 frames", &[&*program, "20000", "50", "few"][..], MEGABYTES_MAX),
        ("a million of them", &[&*program, "20000", "50"], MEGABYTES_MAX_MANY_STACKS),
    ] {
        let report = measured(name, &workshop, words, megabytes_max);
        assert_eq!(report["complete"], true, "{}", report["warnings"]);
        assert_eq!(totals(&report), [1_000_000, 1_000_000]);
    }
}

#[test]
#[ignore = "for its times: in `cargo xtask long`"]
fn twenty_thousand_loads_and_unloads() {
    let workshop = Workshop::new("libraries");
    let program = Program::load("library_cycles").build(workshop.path(), &Value::Null);
    let words = [&*program.to_string_lossy(), "20000"];
    let report = measured("20,000 dlopen cycles", &workshop, &words, MEGABYTES_MAX);
    assert_eq!(report["complete"], true, "{}", report["warnings"]);
}

/// Processes that allocate at the same time, and fork and exit meanwhile, have the same metrics as one after the other.
#[test]
fn processes_at_once_have_the_metrics_of_processes_in_turn() {
    const CHILDREN: u64 = 6;
    let workshop = Workshop::new("at-once");
    let text = "#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
        __attribute__((noinline)) static void work(long rounds, long size) {\n    static void *kept[64];\n\
        \x20   for (long i = 0; i < rounds; i++) {\n        void *volatile block = malloc(size); free(block);\n\
        \x20       free(kept[i % 64]); kept[i % 64] = malloc(size + i % 64);\n    }\n}\n\
        int main(int count, char **words) {\n    (void)words;\n    for (long child = 1; child <= 6; child++) {\n\
        \x20       if (fork() == 0) {\n            for (long part = 0; part < 8; part++) {\n\
        \x20               work(4000 * child, 100 * child);\n\
        \x20               if (fork() == 0) { work(500 * child, 1000 * child); _exit(0); }\n            }\n\
        \x20           while (wait(NULL) > 0);\n            _exit(0);\n        }\n        if (count > 1) wait(NULL);\n    }\n\
        \x20   while (wait(NULL) > 0);\n    return 0;\n}\n";
    let program = build_text(workshop.path(), "children", text);
    let program = program.to_string_lossy();
    let metrics = |words: &[&str]| -> Vec<String> {
        let session = Session::new(workshop.path(), words);
        let _ = session.record().well();
        let report = session.report(&[]);
        assert_eq!(report["complete"], true, "{}", report["warnings"]);
        let children = CHILDREN * (CHILDREN + 1) / 2;
        assert_eq!(metric(&report["totals"], "allocations"), 2 * 8 * (4_000 + 500) * children);
        let mut totals: Vec<String> = report["processes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|process| process["totals"].to_string())
            .collect();
        totals.sort_unstable();
        totals
    };
    let in_turn = metrics(&[&program, "in turn"]);
    assert_eq!(in_turn.len() as u64, 1 + CHILDREN * 9);
    for _ in 0..3 {
        assert_eq!(metrics(&[&program]), in_turn);
    }
}

/// As behind a version manager: many small programs around the important one.
#[test]
fn the_program_behind_a_shim_comes_first_and_can_be_had_alone() {
    let workshop = Workshop::new("behind-a-shim");
    let text = "for i in 1 2 3 4 5 6 7 8 9 10; do sh -c 'true; /bin/true'; done\n\
        exec /usr/bin/python3 -c 'kept = [bytes(10007) for _ in range(300)]'\n";
    std::fs::write(workshop.file("shim"), text).unwrap();
    let session = Session::new(workshop.path(), &["/bin/sh", "shim"]);
    let recorded = session.record().well();
    let row = recorded.stderr.lines().find(|line| line.starts_with("process ")).unwrap();
    assert!(row.contains(" python3 -c kept"), "{recorded}");
    let others = recorded.stderr.lines().find(|line| line.contains(" more programs ")).unwrap();
    assert!(others.starts_with("21 more programs ") && others.ends_with("sh (11), true (10)"), "{recorded}");
    let whole = session.report(&[]);
    let python = |process: &&Value| process["command"].as_str().unwrap().contains("python3");
    let python = whole["processes"].as_array().unwrap().iter().find(python).unwrap().clone();
    for choice in ["main", "largest", "python3"] {
        let alone = session.report(&["--process", choice, "--sort", "bytes", "--limit", "100000"]);
        assert_eq!(alone["processes"].as_array().unwrap().len(), 1, "{choice}");
        assert_eq!(alone["totals"], python["totals"], "{choice}");
        let sum = |name: &str| -> u64 {
            alone["sites"].as_array().unwrap().iter().map(|site| metric(site, name)).sum()
        };
        assert_eq!(sum("allocations"), metric(&python["totals"], "allocations"), "{choice}");
        // Single events are those of this process, too.
        let threads = session.report(&["--process", choice, "--threads"]);
        let of_threads = threads["threads"].as_array().unwrap().iter();
        let sum: u64 = of_threads.map(|thread| metric(thread, "allocations")).sum();
        assert_eq!(sum, metric(&python["totals"], "allocations"), "{threads}");
    }
    let refused = e2e::session::report_of(&session.trace(), &["--process", "ruby"]).ended(Exit::Status(2));
    assert!(refused.stderr.contains("has no process called 'ruby'; it has "), "{refused}");
    assert!(refused.stderr.contains("(python3 -c kept"), "{refused}");
}
