//! Programs with an allocator of their own: recorded like any other if its functions have names, and otherwise
//! detected by `record`, `stat` and `check`, in every process. And programs that look like them but have none.

use e2e::program::build_text;
use e2e::run::{self, Exit};
use e2e::{Session, Workshop, stacks};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds `programs/allocators`, once for all tests, outside of the repository.
fn rust_program(workshop: &Workshop, allocator: &str) -> PathBuf {
    let name = &format!("own-{allocator}");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("allocators");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "build",
        "--release",
        "--locked",
        "--quiet",
        "--features",
        allocator,
        "--bin",
        name,
        "--target-dir",
    ]);
    cargo.arg(&target);
    let _ = run::finish(cargo.current_dir(e2e::repository().join("programs/allocators"))).well();
    let program = workshop.file(name);
    std::fs::copy(target.join("release").join(name), &program).unwrap();
    program
}

fn stripped(program: &Path) -> PathBuf {
    let bare = program.with_extension("stripped");
    let _ = run::finish(run::command("strip").arg("-o").arg(&bare).arg(program)).well();
    bare
}

/// Returns what `record` and `stat` print of a command's memory, which is the same.
#[track_caller]
fn said_of(workshop: &Workshop, words: &[&str]) -> Vec<String> {
    let session = Session::new(workshop.path(), words);
    let bare = session.bare();
    let recorded = session.record().ended(bare.exit);
    let report = session.report(&[]);
    let (counted, stat) = session.stat();
    let counted = counted.ended(bare.exit);
    let said = |document: &Value| {
        let texts =
            document["warnings"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned());
        texts.filter(|text| text.contains("its heap")).collect::<Vec<_>>()
    };
    let (by_record, by_stat) = (said(&report), said(&stat));
    assert_eq!(by_record.len(), by_stat.len(), "{by_record:#?}\n{by_stat:#?}");
    let table = session.under(run::mallow(), &["stat", "--"]).ended(bare.exit);
    for finished in [&recorded, &table] {
        let lines: Vec<&str> = finished.stderr.lines().collect();
        let told = ["these are not the metrics of its heap", "metrics without its heap"]
            .map(|what| format!("{what}, which does not come from malloc"));
        let at = lines.iter().position(|line| told.iter().any(|told| line.ends_with(told.as_str())));
        let is_told = at.is_some_and(|at| lines[at + 1].contains(": exit status "));
        assert_eq!(is_told, !by_record.is_empty(), "{finished}");
    }
    for (finished, document) in [(&recorded, &report), (&counted, &stat)] {
        if !by_record.is_empty() {
            assert_eq!(document["complete"], false, "{document:#}");
            assert!(document["warnings"][0].as_str().unwrap().contains("its heap"), "{document:#}");
            assert!(!finished.stderr.contains("  nothing was live at the end"), "{finished}");
        }
    }
    by_record
}

#[track_caller]
fn is_said(workshop: &Workshop, words: &[&str], what: &str) {
    let said = said_of(workshop, words);
    assert!(said.len() == 1 && said[0].contains(what), "{words:?}: {what}: {said:#?}");
}

/// Returns all metrics of a run under `record` and under `stat`, and of the former's sites: function, allocations, bytes, remaining.
fn metrics_of(workshop: &Workshop, words: &[&str]) -> (Vec<Value>, Vec<Value>) {
    let session = Session::new(workshop.path(), words);
    let bare = session.bare();
    let recorded = session.record().ended(bare.exit);
    assert_eq!(recorded.stdout, bare.stdout);
    let report = session.report(&[]);
    assert_eq!(
        (&report["complete"], report["warnings"].as_array().map(Vec::len)),
        (&Value::Bool(true), Some(0))
    );
    let (counted, stat) = session.stat();
    let _ = counted.ended(bare.exit);
    let metrics = |process: &Value| {
        let names = [
            "allocations",
            "bytes",
            "frees",
            "reallocations",
            "temporary",
            "failed",
            "peak_bytes",
            "peak_blocks",
            "leaked_bytes",
        ];
        Value::from(names.map(|name| process["totals"][name].clone()).to_vec())
    };
    let of =
        |document: &Value| document["processes"].as_array().unwrap().iter().map(metrics).collect::<Vec<_>>();
    let (mut of_record, of_stat) = (of(&report), of(&stat["runs"][0]));
    assert_eq!(of_record, of_stat);
    let sites = report["sites"].as_array().unwrap().iter().map(|site| {
        let functions = stacks::names(site);
        serde_json::json!([
            functions,
            site["allocations"],
            site["bytes"],
            site["leaked_bytes"],
            site["temporary"]
        ])
    });
    let mut sites: Vec<Value> = sites.collect();
    sites.sort_by_key(Value::to_string);
    of_record.retain(|metrics| metrics[0] != 0);
    (of_record, sites)
}

/// Asserts that a program has the same metrics and stacks as with the C library's `malloc`: unchanged, behind
/// wrappers, and stripped with its symbols in a separate file. Without any symbols its memory is detected.
fn is_seen(allocator: &str) {
    let workshop = Workshop::new(&format!("with-{allocator}"));
    let program = rust_program(&workshop, allocator);
    let name = program.to_string_lossy().into_owned();
    let expected = metrics_of(&workshop, &[&rust_program(&workshop, "none").to_string_lossy()]);
    assert_eq!(metrics_of(&workshop, &[&name]), expected);
    for words in [&["nice", "-n", "1", &name][..], &["/bin/sh", "-c", &format!("{name}; true")]] {
        let (processes, _) = metrics_of(&workshop, words);
        assert!(processes.contains(&expected.0[0]), "{words:?}: {processes:?}");
    }
    let bare = stripped(&program);
    is_said(&workshop, &[&bare.to_string_lossy()], "of its memory did not come from malloc");
    let names = bare.with_extension("debug");
    let _ = run::finish(run::command("objcopy").arg("--only-keep-debug").arg(&program).arg(&names)).well();
    let link = format!("--add-gnu-debuglink={}", names.display());
    let _ = run::finish(run::command("objcopy").arg(link).arg(&bare)).well();
    assert_eq!(metrics_of(&workshop, &[&bare.to_string_lossy()]), expected);
}

#[test]
fn mimalloc_in_a_rust_program_is_seen_and_without_names_its_memory_is_noticed() {
    is_seen("mimalloc");
    let workshop = Workshop::new("with-none");
    let plain = rust_program(&workshop, "none");
    assert_eq!(said_of(&workshop, &[&stripped(&plain).to_string_lossy()]), [""; 0]);
}

#[test]
#[ignore = "jemalloc takes minutes to build: in `cargo xtask long`"]
fn jemalloc_in_a_rust_program_is_seen_and_without_names_its_memory_is_noticed() {
    is_seen("jemalloc");
}

/// A program that is not the command itself asks for its patches when it starts.
#[test]
fn an_allocator_that_the_command_does_not_name_is_seen() {
    let workshop = Workshop::new("not-named");
    let (program, plain) = (rust_program(&workshop, "mimalloc"), rust_program(&workshop, "none"));
    let (expected, _) = metrics_of(&workshop, &[&plain.to_string_lossy()]);
    let script = workshop.file("start");
    std::fs::write(&script, format!("{}; true", program.display())).unwrap();
    let (processes, _) = metrics_of(&workshop, &["/bin/sh", &script.to_string_lossy()]);
    assert!(processes.contains(&expected[0]), "{processes:?}");
}

/// A `malloc` of the program's own that cannot be patched.
#[test]
fn what_cannot_be_patched_is_named_and_the_program_runs() {
    let workshop = Workshop::new("unpatchable");
    let text = format!(
        "{BUMP}__asm__(\".text\\n.globl malloc\\n.type malloc, @function\\nmalloc: jrcxz 1f\\n1: jmp own_malloc\\n.size malloc, .-malloc\\n\");\n\
         void *malloc(size_t);\nvoid *own_malloc(size_t bytes) {{ return give(bytes); }}\n\
         __attribute__((noinline)) void free(void *block) {{ if (block) *(volatile char *)block = 0; }}\n\
         int main(void) {{ for (int i = 0; i < 1000; i++) free(malloc(100)); return 7; }}\n"
    );
    let program = build_text(workshop.path(), "unpatchable", &text);
    let words = &[&*program.to_string_lossy()];
    is_said(
        &workshop,
        words,
        "brings its own malloc, not all of which can be seen (malloc: it begins with an unusual jump)",
    );
}

/// Allocates from memory that it maps by the megabyte.
const BUMP: &str = "#define _GNU_SOURCE\n#include <stddef.h>\n#include <string.h>\n#include <sys/mman.h>\n#include <unistd.h>\n\
    static char *at, *end;\n\
    static void *give(size_t bytes) {\n    bytes = (bytes + 15) & ~15ul;\n    if ((size_t)(end - at) < bytes) {\n\
    \x20       at = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n        end = at + (1 << 20);\n    }\n\
    \x20   void *block = at;\n    at += bytes;\n    return block;\n}\n";

#[test]
fn a_pool_of_the_programs_own_is_noticed_however_it_ends() {
    let workshop = Workshop::new("pool");
    for (name, end) in
        [("returns", "return 0;"), ("exits", "_exit(0);"), ("killed", "usleep(300000); raise(9);")]
    {
        let text = format!(
            "{BUMP}#include <signal.h>\nint main(void) {{\n    for (int i = 0; i < 100000; i++) memset(give(128), 1, 128);\n    {end}\n}}\n"
        );
        let program = build_text(workshop.path(), name, &text);
        is_said(
            &workshop,
            &["/bin/sh", "-c", &format!("{}; exit 0", program.display())],
            "did not come from malloc",
        );
    }
}

/// Six threads that allocate explain much of what an allocator keeps, but not where none of its blocks ever lay, which is seen while the program runs. `stat` does
/// not know where blocks lie.
#[test]
fn a_pool_beside_threads_that_allocate_is_noticed() {
    let workshop = Workshop::new("pool-beside-threads");
    let text = format!(
        "{BUMP}#include <pthread.h>\n#include <stdlib.h>\nstatic pthread_barrier_t all;\n\
         static void *work(void *p) {{ void *volatile block = memset(malloc(700000), 1, 700000); pthread_barrier_wait(&all); free(block); return p; }}\n\
         int main(void) {{ pthread_t threads[6]; pthread_barrier_init(&all, NULL, 6);\n\
         for (int i = 0; i < 6; i++) pthread_create(&threads[i], NULL, work, NULL);\n\
         for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);\n\
         for (int i = 0; i < 400000; i++) memset(give(128), 1, 128);\nusleep(2000000);\nreturn 0; }}\n"
    );
    let program = build_text(workshop.path(), "pool", &text);
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    let _ = session.record().ended(Exit::Status(0));
    let report = session.report(&[]);
    let warning = report["warnings"][0].as_str().unwrap();
    assert!(
        warning.contains(" (pool): ")
            && warning.contains("of its memory did not come from malloc, from which it had 4.01 MiB at most"),
        "{report:#}"
    );
    assert_eq!(report["complete"], false);
}

/// Programs that look similar, but have no allocator of their own.
#[test]
fn other_memory_is_no_allocators() {
    let workshop = Workshop::new("no-pool");
    let file = workshop.file("data");
    std::fs::write(&file, vec![7u8; 64 << 20]).unwrap();
    let data = file.to_string_lossy().into_owned();
    let head = "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <pthread.h>\n#include <stdlib.h>\n#include <string.h>\n#include <sys/mman.h>\n\
                #include <sys/wait.h>\n#include <unistd.h>\n";
    let wait = "usleep(200000);";
    let programs = [
        (
            "file",
            format!(
                "{head}int main(void) {{ long sum = 0; int file = open(\"{data}\", O_RDONLY);\n\
                 volatile char *all = mmap(NULL, 64 << 20, PROT_READ, MAP_PRIVATE, file, 0);\n\
                 for (long i = 0; i < 64 << 20; i += 4096) sum += all[i];\n{wait} return sum == 0; }}\n"
            ),
        ),
        (
            "static",
            format!(
                "{head}static char room[64 << 20];\nint main(void) {{ memset(room, 1, sizeof room); {wait} return room[5] == 0; }}\n"
            ),
        ),
        (
            "shared",
            format!(
                "{head}int main(void) {{ char *all = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);\n\
                 memset(all, 1, 64 << 20); {wait} return all[9] == 0; }}\n"
            ),
        ),
        (
            "freed",
            format!(
                "{head}static void *blocks[400000];\nint main(void) {{ for (int i = 0; i < 400000; i++) blocks[i] = memset(malloc(128), 1, 128);\n\
                 for (int i = 0; i < 399999; i++) free(blocks[i]);\n{wait} return 0; }}\n"
            ),
        ),
        (
            "stacks",
            format!(
                "{head}static pthread_barrier_t all;\n\
                 static void *work(void *p) {{ volatile char room[2 << 20]; for (long i = 0; i < 2 << 20; i += 4096) room[i] = 1; if (room[4096] == 0) return NULL;\n\
                 pthread_barrier_wait(&all); {wait} return p; }}\n\
                 int main(void) {{ pthread_t threads[16]; pthread_barrier_init(&all, NULL, 16);\n\
                 for (int i = 0; i < 16; i++) pthread_create(&threads[i], NULL, work, NULL);\n\
                 for (int i = 0; i < 16; i++) pthread_join(threads[i], NULL);\nreturn 0; }}\n"
            ),
        ),
        (
            "arenas",
            format!(
                "{head}static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;\nstatic pthread_barrier_t all;\n\
                 static void *work(void *p) {{ static __thread void *blocks[80000]; blocks[0] = malloc(9); pthread_barrier_wait(&all);\n\
                 pthread_mutex_lock(&turn); for (int i = 0; i < 80000; i++) blocks[i] = memset(malloc(128), 1, 128);\n\
                 for (int i = 0; i < 79999; i++) free(blocks[i]);\n pthread_mutex_unlock(&turn); pthread_barrier_wait(&all); {wait} return p; }}\n\
                 int main(void) {{ pthread_t threads[8]; pthread_barrier_init(&all, NULL, 8);\n\
                 for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, work, NULL);\n for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);\nreturn 0; }}\n"
            ),
        ),
        (
            "deep",
            format!(
                "{head}static int down(int n) {{ volatile char room[4096]; room[0] = n; if (n == 0) {{ {wait} return 0; }} return down(n - 1) + room[0] * 0; }}\n\
                 int main(void) {{ return down(1700); }}\n"
            ),
        ),
        (
            "forks",
            format!(
                "{head}int main(void) {{ void *all[500]; for (int i = 0; i < 500; i++) {{ all[i] = memset(malloc(100000), 1, 100000); }}\n\
                 for (int i = 0; i < 4; i++) {{ if (fork() == 0) {{ void *volatile block = malloc(10); free(block); {wait} return 0; }} }}\n\
                 while (wait(NULL) > 0) {{}}\n free(all[0]); return 0; }}\n"
            ),
        ),
    ];
    for (name, text) in programs {
        let program = build_text(workshop.path(), name, &text);
        assert_eq!(said_of(&workshop, &[&program.to_string_lossy()]), [""; 0], "{name}");
    }
}

#[test]
fn runtimes_are_called_what_they_are() {
    let workshop = Workshop::new("runtimes");
    let python = "kept = [str(i) * 3 for i in range(300000)]; print(len(kept))";
    assert_eq!(said_of(&workshop, &["python3", "-c", python]), [""; 0]);
    let ruby = "kept = (0..300_000).map { |i| i.to_s * 3 }; puts kept.size";
    assert_eq!(said_of(&workshop, &["/usr/bin/ruby", "-e", ruby]), [""; 0]);
    let node = "const kept = []; for (let i = 0; i < 1e6; i++) kept.push({ i }); console.log(kept.length)";
    assert_eq!(said_of(&workshop, &["node", "-e", node]), [""; 0]);
    let sql = "create table t(a); with recursive c(x) as (select 1 union all select x + 1 from c where x < 300000) \
               insert into t select x || 'text' from c; select count(*) from t;";
    assert_eq!(said_of(&workshop, &["sqlite3", ":memory:", sql]), [""; 0]);
    let session = Session::new(workshop.path(), &["node", "-e", node]);
    let recorded = session.record().ended(Exit::Status(0));
    assert!(recorded.stderr.contains("Node keeps its objects in a heap of its own"), "{recorded}");
}
