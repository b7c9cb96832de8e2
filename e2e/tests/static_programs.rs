//! Static executables, which no loader starts: mallow maps the recorder into them before their first instruction.
//! Their metrics are those of the same source linked dynamically, only documented differences remain, and what cannot
//! be recorded is refused in a sentence.

use e2e::program::{build_text, build_text_with};
use e2e::run::{self, Exit};
use e2e::session::metric;
use e2e::{Session, Workshop, stacks};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds a program of one source.
fn built(workshop: &Workshop, name: &str, text: &str, compiler: &str, flags: &[&str]) -> PathBuf {
    let is_cxx = compiler.ends_with("++");
    let source = workshop.file(&format!("{name}.{}", if is_cxx { "cpp" } else { "c" }));
    std::fs::write(&source, text).unwrap();
    let program = workshop.file(name);
    let mut command = run::command(compiler);
    command.args(["-O1", "-g", "-fno-builtin", "-pthread", "-o"]).arg(&program).arg(&source).args(flags);
    let _ = run::finish(&mut command).well();
    program
}

/// Returns the sums of sites at which a function allocates, directly or through an operator: allocations, bytes, leaked bytes, temporary.
fn of_function(report: &Value, function: &str) -> [u64; 4] {
    let sites = report["sites"].as_array().unwrap().iter();
    let is_its = |site: &&Value| {
        let names = stacks::names(site);
        let plumbing = ["operator new", "alloc::", "core::", "std::", "__rust"];
        let is_plumbing = |name: &&String| plumbing.iter().any(|part| name.contains(part));
        names.iter().find(|name| !is_plumbing(name)).is_some_and(|name| name == function)
    };
    let rows: Vec<&Value> = sites.filter(is_its).collect();
    ["allocations", "bytes", "leaked_bytes", "temporary"]
        .map(|name| rows.iter().map(|row| metric(row, name)).sum())
}

/// Threads, thread-local data with initial values and with an alignment of its own, children, and an address among the initial values.
const WORK: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static int seven = 7;
static __thread int *kept = &seven, count = 11;
static __thread char aligned[100] __attribute__((aligned(256))) = "text";
static __thread long zeros[50];
__attribute__((noinline)) char *give(size_t n) { char *p = malloc(n); memset(p, 1, n); return p; }
static void *work(void *context) {
    for (int i = 0; i < 1000; i++) free(give(i % 100 + 1));
    for (int i = 0; i < 50; i++) if (zeros[i]) abort();
    if (*kept != 7 || count++ != 11 || strcmp(aligned, "text") || (unsigned long)aligned % 256) abort();
    return context;
}
int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    work(NULL);
    char *grown = realloc(give(10), 1000);
    void *block = NULL;
    if (posix_memalign(&block, 64, 100)) return 1;
    free(realloc(grown, 100000));
    int status;
    if (fork() == 0) { free(give(5)); give(6); _exit(9); }
    wait(&status);
    give(77);
    printf("%d %d %d\n", *kept, count, WEXITSTATUS(status));
    return 3;
}
"#;

#[test]
fn every_kind_of_static_program_is_as_the_dynamic_one() {
    let workshop = Workshop::new("static-kinds");
    let of = |name: &str, compiler: &str, flags: &[&str]| {
        let program = built(&workshop, name, WORK, compiler, flags);
        let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
        let recorded = session.record().ended(Exit::Status(3));
        assert_eq!(recorded.stdout, "7 12 9\n", "{name}");
        let report = session.report(&[]);
        assert_eq!(report["complete"], true, "{name}: {report:#}");
        assert_eq!(report["processes"][1]["exit"], 9, "{name}: {recorded}");
        let (counted, stat) = session.stat();
        let _ = counted.ended(Exit::Status(3));
        let sums = |totals: &Value| ["allocations", "bytes", "frees"].map(|name| metric(totals, name));
        assert_eq!(sums(&report["totals"]), sums(&stat["runs"][0]["totals"]), "{name}");
        // Before the program's own calls, glibc initialises itself; invalid frees of free blocks do not count.
        let freed = metric(&report["totals"], "allocations") - metric(&report["totals"], "leaked_blocks");
        assert_eq!(metric(&report["totals"], "frees"), freed, "{name}");
        ["give", "main"].map(|function| of_function(&report, function))
    };
    let expected = of("dynamic", "cc", &[]);
    assert_eq!(expected[0], [5004, 5 * 50_500 + 98, 83, 5002]);
    for (name, compiler, flags) in [
        ("glibc", "cc", &["-static"][..]),
        ("glibc-pie", "cc", &["-static-pie", "-fPIE"]),
        ("glibc-gold", "cc", &["-static", "-fuse-ld=gold"]),
        ("musl", "musl-gcc", &["-static"]),
    ] {
        assert_eq!(of(name, compiler, flags), expected, "{name}");
    }
}

const THROWS: &str = r#"
#include <cstdio>
#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string>
__attribute__((noinline)) char *give(size_t n) { char *p = new char[n]; asm volatile("" : : "r"(p) : "memory"); return p; }
__attribute__((noinline)) void deep(int n) { delete[] give(30); if (n == 0) throw std::runtime_error("end"); deep(n - 1); asm volatile(""); }
int main() {
    volatile size_t huge = (size_t)1 << 47;
    int caught = 0;
    for (int i = 0; i < 500; i++) {
        try { delete[] give(huge); } catch (std::bad_alloc &) { caught++; }
        try { deep(3); } catch (std::runtime_error &) { caught++; }
        delete[] give(100);
    }
    printf("caught %d\n", caught);
}
"#;

#[test]
fn exceptions_pass_through_what_stands_in_a_static_program() {
    let workshop = Workshop::new("static-throws");
    for (name, flags) in [
        ("plain", &["-static"][..]),
        ("pie", &["-static-pie", "-fPIE"]),
        ("jemalloc", &["-static", "-l:libjemalloc.a", "-lm"]),
        ("tcmalloc", &["-static", "-l:libtcmalloc_minimal.a"]),
    ] {
        let program = built(&workshop, name, THROWS, "c++", flags);
        let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
        assert_eq!(session.record().well().stdout, "caught 1000\n", "{name}");
        let report = session.report(&[]);
        assert_eq!(report["complete"], true, "{name}: {report:#}");
        assert_eq!(of_function(&report, "give"), [2500, 500 * (4 * 30 + 100), 0, 2500], "{name}");
    }
}

/// A static executable of Rust, with glibc: no other target is needed to build it.
#[test]
fn a_static_program_of_rust_is_as_the_dynamic_one() {
    let workshop = Workshop::new("static-rust");
    let source = workshop.file("tool.rs");
    let text = "#[inline(never)]\nfn row(n: usize) -> Vec<u8> { std::hint::black_box(vec![7; 20 + n % 2]) }\n\
                #[inline(never)]\nfn rows() -> Vec<Vec<u8>> { (0..1000).map(row).collect() }\n\
                fn main() {\n    let threads: Vec<_> = (0..3).map(|_| std::thread::spawn(|| rows().len())).collect();\n\
                \x20   let sum: usize = threads.into_iter().map(|it| it.join().unwrap()).sum();\n\
                \x20   let caught = std::panic::catch_unwind(|| { let kept = rows(); if sum > 0 { panic!(\"{}\", kept.len()) } });\n\
                \x20   println!(\"{sum} {}\", caught.is_err());\n}\n";
    std::fs::write(&source, text).unwrap();
    let of = |name: &str, flag: &str| {
        let program = workshop.file(name);
        let mut rustc = run::command(env!("CARGO").replace("cargo", "rustc"));
        rustc
            .args(["-O", "-g", "-C", flag, "-o"])
            .arg(&program)
            .arg(&source)
            .env("PATH", std::env::var("PATH").unwrap());
        let _ = run::finish(&mut rustc).well();
        let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
        assert_eq!(session.record().well().stdout, "3000 true\n", "{name}");
        let report = session.report(&[]);
        assert_eq!(report["complete"], true, "{name}: {report:#}");
        ["tool::row", "tool::rows"].map(|function| of_function(&report, function))
    };
    let expected = of("dynamic", "target-feature=-crt-static");
    assert_eq!(expected[0][..2], [4000, 82_000]);
    assert_eq!(of("static", "target-feature=+crt-static"), expected);
}

/// Returns the message if a command is refused.
fn refused(workshop: &Workshop, program: &Path) -> String {
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    session.record().ended(Exit::Status(125)).stderr
}

#[test]
fn a_static_program_without_names_is_refused_and_recorded_with_its_debug_file() {
    let workshop = Workshop::new("static-stripped");
    let whole = built(&workshop, "whole", WORK, "cc", &["-static"]);
    let bare = workshop.file("bare");
    let _ = run::finish(run::command("strip").arg("-o").arg(&bare).arg(&whole)).well();
    let said = refused(&workshop, &bare);
    assert!(said.contains("a static program: it has no names of functions that allocate"), "{said}");
    assert!(said.contains("keep its symbols"), "{said}");
    let names = workshop.file("bare.debug");
    let _ = run::finish(run::command("objcopy").arg("--only-keep-debug").arg(&whole).arg(&names)).well();
    let link = format!("--add-gnu-debuglink={}", names.display());
    let _ = run::finish(run::command("objcopy").arg(link).arg(&bare)).well();
    let session = Session::new(workshop.path(), &[&bare.to_string_lossy()]);
    let _ = session.record().ended(Exit::Status(3));
    assert_eq!(of_function(&session.report(&[]), "give")[0], 5004);
}

#[test]
fn a_static_program_of_no_libc_that_is_known_is_refused_and_so_is_gos() {
    let workshop = Workshop::new("static-others");
    let bump = "static char pool[1 << 20]; static unsigned long at;\n\
                void *malloc(unsigned long n) { void *p = pool + at; at += (n + 15) & ~15ul; return p; }\n\
                void free(void *p) { *(volatile char *)p = 0; }\n\
                void _start(void) { free(malloc(100)); __asm__ volatile(\"mov $60, %eax\\nxor %edi, %edi\\nsyscall\"); }\n";
    let own = built(&workshop, "own", bump, "cc", &["-static", "-nostdlib", "-nostartfiles"]);
    let said = refused(&workshop, &own);
    assert!(said.contains("neither glibc's nor musl's names"), "{said}");
    let go = workshop.file("main.go");
    std::fs::write(&go, "package main\nfunc main() { println(len(make([]byte, 100))) }\n").unwrap();
    let program = workshop.file("go-program");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&program).arg(&go).env("CGO_ENABLED", "0");
    let _ = run::finish(&mut build).well();
    let said = refused(&workshop, &program);
    assert!(said.contains("Go keeps its objects in a heap of its own"), "{said}");
}

/// Refuses `ptrace`, as some sandboxes do, and executes its arguments.
const WITHOUT_PTRACE: &str = "#include <errno.h>\n#include <linux/filter.h>\n#include <linux/seccomp.h>\n#include <stddef.h>\n#include <sys/prctl.h>\n\
    #include <sys/syscall.h>\n#include <unistd.h>\nint main(int n, char **words) {\n    struct sock_filter code[] = {\n\
    \x20       BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),\n\
    \x20       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};\n\
    \x20   struct sock_fprog filter = {4, code};\n    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);\n\
    \x20   if (n < 2 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return 9;\n    execv(words[1], words + 1);\n    return 8;\n}\n";

#[test]
fn where_nothing_may_be_traced_a_static_program_is_refused_in_a_sentence() {
    let workshop = Workshop::new("static-untraced");
    let program = built(&workshop, "whole", WORK, "cc", &["-static"]);
    let under = build_text(workshop.path(), "without-ptrace", WITHOUT_PTRACE);
    let mut command = run::command(under);
    command
        .arg(run::mallow_binary())
        .args(["record", "-o"])
        .arg(workshop.file("x.mallow"))
        .arg("--")
        .arg(&program);
    let said = run::finish(&mut command).ended(Exit::Status(125)).stderr;
    assert!(said.contains("does not let mallow trace it before its first instruction"), "{said}");
    assert!(!workshop.file("x.mallow").exists());
}

/// The executable cannot be read there, nor the process's memory: it stood still for ever, and mallow with it.
#[test]
fn without_proc_a_static_program_is_refused_and_ended() {
    let workshop = Workshop::new("no-proc");
    let program = build_text_with(workshop.path(), "static", "int main(void) { return 0; }\n", &["-static"]);
    let mallow = run::mallow_binary();
    let [program, mallow] = [&program, &mallow].map(|path| path.to_string_lossy().into_owned());
    for command in ["record -o a.mallow", "stat"] {
        let line = format!("mount -t tmpfs none /proc; exec timeout -k 1 10 {mallow} {command} -- {program}");
        let mut command = run::command("unshare");
        let finished = run::finish(command.args(["-rm", "sh", "-c", &line]).current_dir(workshop.path()));
        let finished = finished.ended(Exit::Status(125));
        assert!(finished.stderr.contains("a static program: "), "{finished}");
    }
}
