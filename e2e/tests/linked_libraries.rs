//! Allocators in shared libraries: hidden in a library that the program is linked with, in one that it loads while it
//! runs, and an allocator's own interface. Their calls equal those of the C library's.

use e2e::run::{self, Exit};
use e2e::session::metric;
use e2e::{Session, Workshop, stacks};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// A list of free blocks, each with its length in front, over memory that is mapped by the megabyte.
const POOL: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#define OWN __attribute__((visibility("hidden"), noinline))
struct node { struct node *next; size_t bytes; };
static struct node *freed;
static char *at, *end;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
OWN void *malloc(size_t n) {
    struct node **place, *found = NULL;
    n = (n + 15) & ~15ul;
    pthread_mutex_lock(&lock);
    for (place = &freed; *place && !found; ) if ((*place)->bytes >= n) { found = *place; *place = found->next; } else place = &(*place)->next;
    if (!found) {
        if ((size_t)(end - at) < n + 16) { size_t all = n + 16 > 1 << 20 ? n + 16 : 1 << 20; at = mmap(0, all, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); end = at + all; }
        found = (struct node *)at; at += n + 16; found->bytes = n;
    }
    pthread_mutex_unlock(&lock);
    return found + 1;
}
OWN void free(void *block) {
    struct node *node = (struct node *)block - 1;
    if (!block) return;
    pthread_mutex_lock(&lock); node->next = freed; freed = node; pthread_mutex_unlock(&lock);
}
OWN void *calloc(size_t n, size_t m) { return memset(malloc(n * m), 0, n * m); }
OWN void *realloc(void *block, size_t n) {
    struct node *node = (struct node *)block - 1; void *other;
    if (!block) return malloc(n);
    if (node->bytes >= n) return block;
    other = malloc(n); memcpy(other, block, node->bytes); free(block); return other;
}
"#;

const LIBRARY: &str = r#"
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) static char *give(size_t n) { char *p = malloc(n); memset(p, 1, n); return p; }
__attribute__((constructor)) static void at_load(void) { free(give(500)); }
void work(int n) {
    for (int i = 0; i < n; i++) free(give(i % 100 + 1));
    char *grown = realloc(give(10), 5000);
    free(calloc(7, 11)); free(grown); give(77);
}
"#;

const LOADS: &str = r#"
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
static volatile int over;
static void *other(void *context) { while (!over) free(malloc(20)); return context; }
int main(int n, char **words) {
    pthread_t thread;
    pthread_create(&thread, NULL, other, NULL);
    for (int i = 0; i < atoi(words[2]); i++) {
        void *library = dlopen(words[1], RTLD_NOW);
        if (!library) return 1;
        ((void (*)(int))dlsym(library, "work"))(1000);
        dlclose(library);
    }
    over = 1;
    pthread_join(thread, NULL);
    return 0;
}
"#;

const LINKED: &str = "void work(int);\nint main(void) { work(1000); return 0; }\n";

fn built(workshop: &Workshop, name: &str, texts: &[&str], flags: &[&str]) -> PathBuf {
    let program = workshop.file(name);
    let mut compiler = run::command("cc");
    compiler.args(["-O1", "-g", "-fno-builtin", "-pthread", "-o"]).arg(&program);
    for (index, text) in texts.iter().enumerate() {
        let source = workshop.file(&format!("{name}-{index}.c"));
        std::fs::write(&source, text).unwrap();
        compiler.arg(source);
    }
    let _ = run::finish(compiler.args(flags)).well();
    program
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Returns, for the sites of the library's own functions: allocations, bytes, leaked, temporary. `stat` has the same totals.
fn of_library(workshop: &Workshop, words: &[&str]) -> Vec<[u64; 4]> {
    let session = Session::new(workshop.path(), words);
    let _ = session.record().well();
    let report = session.report(&[]);
    assert_eq!((&report["complete"], &report["warnings"]), (&json!(true), &json!([])), "{words:?}");
    let sum = |function: &str| {
        let rows = stacks::of_site(
            &report,
            &json!({"function": function, "passes_through": [function, "main"]}),
            workshop.path(),
        );
        ["allocations", "bytes", "leaked_bytes", "temporary"]
            .map(|name| rows.iter().map(|row| metric(row, name)).sum())
    };
    ["give", "work"].map(sum).to_vec()
}

#[test]
fn an_allocator_hidden_in_a_library_is_seen_when_the_program_begins_and_when_it_is_loaded() {
    let workshop = Workshop::new("library-hidden");
    let shared = &["-shared", "-fPIC"];
    let (own, plain) = (
        built(&workshop, "libown.so", &[LIBRARY, POOL], shared),
        built(&workshop, "libplain.so", &[LIBRARY], shared),
    );
    let per_load = [[1002, 50_500 + 87, 77, 1001], [2, 5077, 0, 1]];
    let with_own = built(&workshop, "with-own", &[LINKED], &[&text(&own)]);
    let with_plain = built(&workshop, "with-plain", &[LINKED], &[&text(&plain)]);
    for program in [&with_plain, &with_own] {
        assert_eq!(of_library(&workshop, &[&text(program)]), per_load, "{program:?}");
    }
    let loads = text(&built(&workshop, "loads", &[LOADS], &["-ldl"]));
    // More often than there is room for trampolines: those of a library that is loaded again are reused. It also allocates while it is loaded.
    let [[calls, bytes, leaked, temporary], of_work] = per_load;
    let times = 260;
    let expected =
        [[calls + 1, bytes + 500, leaked, temporary + 1], of_work].map(|of| of.map(|metric| times * metric));
    for library in [&plain, &own] {
        assert_eq!(
            of_library(&workshop, &[&loads, &text(library), &times.to_string()]),
            expected,
            "{library:?}"
        );
    }
}

#[test]
fn what_a_library_allocates_as_it_is_loaded_is_seen() {
    let workshop = Workshop::new("library-loading");
    let own = built(&workshop, "libown.so", &[LIBRARY, POOL], &["-shared", "-fPIC"]);
    let loads = text(&built(&workshop, "loads", &[LOADS], &["-ldl"]));
    let session = Session::new(workshop.path(), &[&loads, &text(&own), "5"]);
    let _ = session.record().well();
    let report = session.report(&[]);
    let site = json!({"function": "give", "passes_through": ["give", "at_load", "main"]});
    let rows = stacks::of_site(&report, &site, workshop.path());
    assert_eq!(rows.iter().map(|row| metric(row, "bytes")).sum::<u64>(), 2500, "{report:#}");
    // `stat` counts as many calls.
    let (counted, stat) = session.stat();
    let _ = counted.well();
    assert!(metric(&stat["runs"][0]["totals"], "allocations") >= 5 * 1005, "{stat:#}");
}

const INTERFACE: &str = r#"
#include <mimalloc.h>
#include <stdlib.h>
__attribute__((noinline)) static void *of_its_own(size_t n) { return mi_malloc_aligned(n, 64); }
__attribute__((noinline)) static void *of_c(size_t n) { return malloc(n); }
int main(void) {
    for (int i = 0; i < 1000; i++) { mi_free(of_its_own(100)); free(of_c(50)); mi_free(of_c(25)); free(mi_rezalloc(of_its_own(10), 4000)); }
    return 0;
}
"#;

#[test]
fn an_allocators_own_interface_is_seen_in_its_shared_library_and_each_call_once() {
    let workshop = Workshop::new("library-interface");
    // Before the C library, so that its `malloc` is used.
    let program = text(&built(&workshop, "interface", &[INTERFACE], &["-Wl,--no-as-needed", "-lmimalloc"]));
    let session = Session::new(workshop.path(), &[&program]);
    let _ = session.record().well();
    let report = session.report(&[]);
    let of = |function: &str| {
        let rows = stacks::of_site(&report, &json!({"function": function}), workshop.path());
        ["allocations", "bytes", "temporary", "leaked_bytes"]
            .map(|name| rows.iter().map(|row| metric(row, name)).sum::<u64>())
    };
    assert_eq!(of("of_its_own"), [2000, 110_000, 2000, 0]);
    assert_eq!(of("of_c"), [2000, 75_000, 2000, 0]);
    assert_eq!(of("main"), [1000, 4_000_000, 1000, 0]);
    let (counted, stat) = session.stat();
    let _ = counted.well();
    for name in ["allocations", "bytes", "frees", "temporary", "leaked_bytes", "peak_bytes"] {
        assert_eq!(metric(&stat["runs"][0]["totals"], name), metric(&report["totals"], name), "{name}");
    }
}

/// A `malloc` that begins with a jump that has no long form.
const UNPATCHABLE: &str = "__asm__(\".text\\n.globl malloc\\n.hidden malloc\\n.type malloc, @function\\nmalloc: jrcxz 1f\\n1: jmp own_malloc\\n.size malloc, .-malloc\\n\");\n\
    static char pool[1 << 16]; static unsigned long at;\n__attribute__((visibility(\"hidden\"))) void *own_malloc(unsigned long n) { void *p = pool + at; at += (n + 15) & ~15ul; return p; }\n\
    __attribute__((visibility(\"hidden\"), noinline)) void free(void *p) { if (p) *(volatile char *)p = 0; }\n\
    void *malloc(unsigned long); void work(int n) { while (n--) free(malloc(10)); }\n";

#[test]
fn a_library_whose_allocator_cannot_be_patched_is_named_and_the_program_runs() {
    let workshop = Workshop::new("library-unpatchable");
    let library = built(&workshop, "libodd.so", &[UNPATCHABLE], &["-shared", "-fPIC"]);
    let linked = text(&built(&workshop, "linked", &[LINKED], &[&text(&library)]));
    let loads = text(&built(&workshop, "loads", &[LOADS], &["-ldl"]));
    for words in [&[&*linked][..], &[&loads, &text(&library), "2"]] {
        let session = Session::new(workshop.path(), words);
        let recorded = session.record().well();
        let said = "its library libodd.so brings its own malloc, not all of which can be seen (malloc: it begins with an unusual jump)";
        assert!(recorded.stderr.contains(said), "{recorded}");
        let report = session.report(&[]);
        assert_eq!(report["complete"], false);
        let (counted, stat) = session.stat();
        let _ = counted.well();
        assert!(stat["warnings"][0].as_str().is_some_and(|text| text.contains(said)), "{stat:#}");
    }
}

/// Loads a library twice while mallow may not be reachable.
const TROUBLED: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static void load(const char *path) {
    void *library = dlopen(path, RTLD_NOW);
    if (!library) _exit(9);
    ((void (*)(int))dlsym(library, "work"))(1000);
    dlclose(library);
}
static long now_ms(void) { struct timespec at; clock_gettime(CLOCK_MONOTONIC, &at); return at.tv_sec * 1000 + at.tv_nsec / 1000000; }
static void forbid(void) {
    static const int numbers[] = {SYS_socket, SYS_connect, SYS_poll, SYS_sendto, SYS_sendmsg, SYS_recvmsg, SYS_arch_prctl, SYS_setsockopt};
    enum { COUNT = sizeof numbers / sizeof *numbers };
    struct sock_filter code[COUNT + 3] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    for (int i = 0; i < COUNT; i++) code[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, numbers[i], COUNT - i, 0);
    code[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {COUNT + 3, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) _exit(8);
}
int main(int n, char **words) {
    pid_t mallow = getppid(), child;
    long start = now_ms();
    FILE *said;
    switch (*words[2]) {
    /* Its other threads stop a little later. */
    case 's': kill(mallow, SIGSTOP); usleep(100000); break;
    case 'k': kill(mallow, SIGKILL); break;
    case 'f': forbid(); break;
    case 'c':
        if (!(child = fork())) { load(words[1]); _exit(0); }
        waitpid(child, NULL, 0);
        if (!(child = vfork())) { execl("/bin/true", "true", (char *)NULL); _exit(0); }
        waitpid(child, NULL, 0);
        if (!fork()) { load(words[1]); _exit(0); }
        wait(NULL);
    }
    load(words[1]);
    load(words[1]);
    start = now_ms() - start;
    if (*words[2] == 's') kill(mallow, SIGCONT);
    if (words[3]) { said = fopen(words[3], "w"); fprintf(said, "%ld\n", start); fclose(said); }
    return 0;
}
"#;

#[test]
fn a_library_is_loaded_when_mallow_stands_still_or_was_killed_and_behind_a_filter() {
    let workshop = Workshop::new("library-troubled");
    let own = text(&built(&workshop, "libown.so", &[LIBRARY, POOL], &["-shared", "-fPIC"]));
    let program = text(&built(&workshop, "troubled", &[TROUBLED], &["-ldl"]));
    let (said, later) = (text(&workshop.file("said")), workshop.file("later"));
    let took_ms = || -> u64 { std::fs::read_to_string(&said).unwrap().trim().parse().unwrap() };
    let filtered = Session::new(workshop.path(), &[&program, &own, "filter"]);
    let _ = filtered.record().ended(Exit::Status(0));
    // The first of the two loads waits, once.
    let stopped = Session::new(workshop.path(), &[&program, &own, "stop", &said]);
    let recorded = stopped.record().well();
    assert!((3000..6000).contains(&took_ms()), "{} ms", took_ms());
    let sentence = "mallow stood still when it was asked about what the process loaded, so what allocators of their own did there is missing (executables and libraries: 2)";
    assert!(recorded.stderr.contains(sentence), "{recorded}");
    assert_eq!(stopped.report(&[])["complete"], false);
    let killed = Session::new(workshop.path(), &[&program, &own, "kill", &text(&later)]);
    let _ = killed.record();
    let patience = std::time::Instant::now();
    while !later.exists() && patience.elapsed().as_secs() < 10 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert!(later.exists(), "the program did not go on when mallow was killed");
}

#[test]
fn forked_children_load_libraries_as_their_parents_do() {
    let workshop = Workshop::new("library-forked");
    let own = text(&built(&workshop, "libown.so", &[LIBRARY, POOL], &["-shared", "-fPIC"]));
    let program = text(&built(&workshop, "troubled", &[TROUBLED], &["-ldl"]));
    // Two children and twice the parent.
    let expected =
        [[1003, 51_087, 77, 1002], [2, 5077, 0, 1]].map(|of: [u64; 4]| of.map(|metric| 4 * metric));
    assert_eq!(of_library(&workshop, &[&program, &own, "children"]), expected);
}

/// A program that cannot ask has the patches that were planned before the start, and no more.
#[test]
fn where_mallow_cannot_be_asked_the_program_runs_and_what_is_not_seen_is_named() {
    let workshop = Workshop::new("library-unasked");
    let program = built(&workshop, "own", &[LINKED, LIBRARY, POOL], &[]);
    let script = workshop.file("start");
    std::fs::write(&script, format!("MALLOW_SESSION=\"${{MALLOW_SESSION%:*}}\" exec {}", text(&program)))
        .unwrap();
    let session = Session::new(workshop.path(), &["/bin/sh", &text(&script)]);
    let recorded = session.record().ended(Exit::Status(0));
    let said = "brings its own malloc, which could not be looked at before it ran";
    assert!(recorded.stderr.contains(said), "{recorded}");
    // The same with mallow reachable.
    std::fs::write(&script, format!("exec {}", text(&program))).unwrap();
    let report: Value = {
        let _ = session.record().well();
        session.report(&[])
    };
    assert_eq!((&report["complete"], &report["warnings"]), (&json!(true), &json!([])));
    let rows = stacks::of_site(&report, &json!({"function": "give"}), workshop.path());
    assert_eq!(rows.iter().map(|row| metric(row, "allocations")).sum::<u64>(), 1003);
}
