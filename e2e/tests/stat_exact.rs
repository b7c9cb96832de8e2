//! `mallow stat` counts without a collector; its metrics equal those of `mallow record`.

use e2e::program::{Program, build_text};
use e2e::run;
use e2e::session::metric;
use e2e::{Session, Workshop};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// Sums are exact whatever the threads do; the error of the peak is within its reported bound.
#[test]
fn stat_of_busy_threads_is_exact_but_for_a_peak_within_its_bound() {
    let workshop = Workshop::new("stat-threads");
    let text = "#include <pthread.h>\n#include <stdlib.h>\nstatic pthread_barrier_t all;\nstatic void *kept[4][1000];\n\
                static void churn(void) { for (int i = 0; i < 20000; i++) { void *volatile block = malloc(100 + i % 50); free(block); } }\n\
                static void *work(void *at) {\n    void **mine = at;\n    churn();\n\
                \x20   for (int i = 0; i < 1000; i++) mine[i] = malloc(1000);\n    pthread_barrier_wait(&all);\n    churn();\n\
                \x20   for (int i = 100; i < 1000; i++) free(mine[i]);\n    churn();\n    return NULL;\n}\n\
                int main(void) {\n    pthread_t threads[4];\n    pthread_barrier_init(&all, NULL, 4);\n\
                \x20   for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, kept[i]);\n\
                \x20   for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);\n    return 0;\n}\n";
    let program = workshop.file("busy");
    let source = workshop.file("busy.c");
    fs::write(&source, text).unwrap();
    let mut cc = Command::new("cc");
    let _ = run::finish(cc.args(["-O1", "-fno-builtin", "-pthread", "-o"]).arg(&program).arg(&source)).well();
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    let _ = session.record().well();
    let recorded = session.report(&[]);
    let (_, counted) = session.stat();
    let run = &counted["runs"][0];
    for name in ["allocations", "bytes", "frees", "leaked_bytes", "leaked_blocks"] {
        assert_eq!(run["totals"][name], recorded["totals"][name], "{name}");
    }
    assert_eq!(metric(&run["totals"], "leaked_bytes") / 100_000, 4, "{run:#}");
    let (error, peak) = (metric(run, "peak_error_bytes"), metric(&recorded["totals"], "peak_bytes"));
    assert!(error > 0 && error <= peak / 1000, "{error} of {peak}");
    let off = metric(&run["totals"], "peak_bytes").abs_diff(peak);
    // Churn of the threads that are not at the barrier yet changes the true peak from run to run.
    assert!(off <= error + 4 * 150, "{off} bytes off, {error} are admitted");
}

/// An allocator whose blocks are closer together than glibc's: none is confused with its neighbour, though both
/// allocators are used through the same library.
#[test]
fn blocks_that_lie_close_are_told_apart() {
    let workshop = Workshop::new("stat-close-blocks");
    let program = Program::load("close_blocks").build(workshop.path(), &Value::Null);
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    let _ = session.record().well();
    let recorded = session.report(&[]);
    let (_, counted) = session.stat();
    assert_eq!(counted["runs"][0]["totals"], recorded["totals"]);
}

/// The sizes of glibc's blocks take at most an eighth of the heap.
#[test]
fn the_sizes_of_a_heap_take_an_eighth_of_it() {
    const HEAP_BYTES: u64 = 64 << 20;
    let workshop = Workshop::new("stat-memory");
    let text = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
                int main(void) {\n    for (long bytes = 0; bytes < 64 << 20; bytes += 48) { char *volatile block = malloc(40); memset(block, 1, 40); }\n\
                \x20   unsigned long pages = 0;\n    FILE *statm = fopen(\"/proc/self/statm\", \"r\");\n    if (fscanf(statm, \"%*u %lu\", &pages) != 1) return 1;\n\
                \x20   printf(\"%lu\\n\", pages * 4096);\n    return 0;\n}\n";
    let program = build_text(workshop.path(), "heap", text);
    let resident = |command: &mut Command| -> u64 {
        let finished = run::finish(command).well();
        finished
            .stdout
            .lines()
            .next()
            .and_then(|line| line.parse().ok())
            .expect("the program prints a number")
    };
    let bare = resident(&mut Command::new(&program));
    let counted = resident(run::mallow().args(["stat", "--"]).arg(&program));
    assert!(bare > HEAP_BYTES, "{bare} bytes");
    let added = counted - bare;
    assert!(added < HEAP_BYTES / 8 + (2 << 20), "{added} bytes for a heap of {HEAP_BYTES}");
}

/// `app N` makes N blocks of 10 bytes and frees all but one of them.
#[test]
fn command_lines_are_counted_side_by_side() {
    let workshop = Workshop::new("stat-lines");
    let source = workshop.file("app.c");
    let text = "#include <stdlib.h>\nint main(int argc, char **argv) {\n    int count = argc > 1 ? atoi(argv[1]) : 1;\n\
                \x20   for (int i = 0; i < count; i++) { void *volatile block = malloc(10); if (i > 0) free(block); }\n    return 0;\n}\n";
    fs::write(&source, text).unwrap();
    let mut cc = Command::new("cc");
    let _ = run::finish(cc.args(["-O1", "-fno-builtin", "-o"]).arg(workshop.file("app")).arg(&source)).well();
    let stat = |words: &[&str]| {
        run::finish(run::mallow().current_dir(workshop.path()).arg("stat").args(words)).well()
    };
    let told = stat(&["-r", "2", "./app 1000", "./app 3", "./app 1000 again"]).stderr;
    let rows = |word: &str| -> Vec<Vec<String>> {
        let rows = told.lines().filter(|line| line.starts_with(word));
        rows.map(|row| row.split_whitespace().skip(1).map(str::to_owned).collect()).collect()
    };
    assert_eq!(
        rows("allocations"),
        [&["1,000", "3", "-997", "-99.7%"][..], &["1,000", "1,000", "0"]],
        "{told}"
    );
    assert_eq!(rows("bytes"), [&["10,000", "30", "-9,970", "-99.7%"][..], &["10,000", "10,000", "0"]]);
    assert_eq!(rows("frees"), [&["999", "2", "-997", "-99.8%"][..], &["999", "999", "0"]]);
    assert!(
        told.starts_with("1: ./app 1000: exit status 0, 2 runs\n2: ./app 3: exit status 0, 2 runs\n3: "),
        "{told}"
    );
    let documents = stat(&["--json", "./app 7", "./app $((2 * 4))"]).stdout;
    let documents: Vec<Value> = documents.lines().map(e2e::session::json).collect();
    assert_eq!(
        [&documents[0]["command"], &documents[1]["command"]],
        [&serde_json::json!(["./app", "7"]), &serde_json::json!(["sh", "-c", "./app $((2 * 4))"])]
    );
    assert_eq!(documents[0]["runs"][0]["totals"]["allocations"], 7);
    let of_app = |process: &&Value| process["command"] == "./app 8";
    let processes = documents[1]["runs"][0]["processes"].as_array().unwrap();
    assert_eq!(processes.iter().find(of_app).unwrap()["totals"]["allocations"], 8, "{}", documents[1]);
}
