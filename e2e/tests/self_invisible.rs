//! mallow does not see itself, and the program does not see mallow.

use e2e::program::build_text;
use e2e::session::metric;
use e2e::{Session, Workshop, run};
use serde_json::Value;

/// Records and counts a program of one source; its output must be the same as without mallow.
fn totals_of(name: &str, text: &str) -> Value {
    let workshop = Workshop::new(name);
    let program = build_text(workshop.path(), name, text);
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    let bare = session.bare().well();
    let recorded = session.record().well();
    assert_eq!(recorded.stdout, bare.stdout, "the program sees mallow record\n{recorded}");
    let (counted, stat) = session.stat();
    assert_eq!(counted.well().stdout, bare.stdout, "the program sees mallow stat");
    let report = session.report(&[]);
    assert_eq!(report["totals"], stat["runs"][0]["totals"]);
    assert_eq!(report["processes"].as_array().unwrap().len(), 1);
    report["totals"].clone()
}

#[track_caller]
fn assert_metrics(totals: &Value, allocations: u64, bytes: u64, frees: u64) {
    let found = ["allocations", "bytes", "frees"].map(|name| metric(totals, name));
    assert_eq!(found, [allocations, bytes, frees]);
}

#[test]
fn nothing_is_nothing() {
    let totals = totals_of("nothing", "int main(void) { return 0; }\n");
    assert!(totals.as_object().unwrap().values().all(|value| *value == 0), "{totals}");
}

#[test]
fn true_allocates_what_valgrind_says() {
    let workshop = Workshop::new("true");
    let session = Session::new(workshop.path(), &["/bin/true"]);
    let _ = session.record().well();
    let totals = &session.report(&[])["totals"];
    let dhat = session
        .under(
            e2e::run::command("valgrind"),
            &["--tool=dhat", "--dhat-out-file=dhat.out", "--run-libc-freeres=no"],
        )
        .well();
    let total = dhat.stderr.lines().find_map(|line| line.split_once("Total:")).unwrap().1.trim();
    let expected = format!("{} bytes in {} blocks", metric(totals, "bytes"), metric(totals, "allocations"));
    assert_eq!(total.replace(',', ""), expected);
}

/// A `vfork` child that executes a program leaves what it mapped to its parent.
#[test]
fn who_starts_others_by_vfork_does_not_grow() {
    let workshop = Workshop::new("vfork-grows");
    let text = "#include <stdio.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
        extern char **environ;\n\
        static long pages(void) {\n\
        \x20   long pages = -1;\n    FILE *file = fopen(\"/proc/self/statm\", \"r\");\n\
        \x20   if (fscanf(file, \"%ld\", &pages) != 1) pages = -1;\n    fclose(file);\n    return pages;\n}\n\
        int main(void) {\n    char *const words[] = {\"true\", NULL};\n    volatile long before = 0;\n\
        \x20   for (volatile int i = 0; i < 60; i++) {\n        int status;\n        if (i == 10) before = pages();\n\
        \x20       pid_t child = vfork();\n\
        \x20       if (child == 0) {\n            execve(\"/nowhere/true\", words, environ);\n\
        \x20           execve(\"/bin/true\", words, environ);\n            _exit(9);\n        }\n\
        \x20       waitpid(child, &status, 0);\n        if (status) return 1;\n    }\n\
        \x20   printf(\"%ld\\n\", pages() - before);\n    return 0;\n}\n";
    let program = build_text(workshop.path(), "starter", text);
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    assert_eq!(session.record().well().stdout, "0\n");
    assert_eq!(session.stat().0.well().stdout, "0\n");
}

#[test]
fn one_malloc_is_one() {
    let text = "#include <stdlib.h>\nint main(void) { return !malloc(4321); }\n";
    assert_metrics(&totals_of("one", text), 1, 4321, 0);
}

#[test]
fn threads_cost_what_libc_takes_for_them() {
    let text = "#include <pthread.h>\n#include <stdlib.h>\n\
        static void *work(void *p) { return p; }\n\
        int main(void) {\n    pthread_t thread;\n    \
        if (pthread_create(&thread, 0, work, 0)) return 1;\n    return pthread_join(thread, 0);\n}\n";
    let totals = totals_of("thread", text);
    assert_eq!(
        metric(&totals, "allocations"),
        1,
        "pthread_create's table of thread-local pointers, nothing of ours"
    );
}

/// Prints every open descriptor without allocating.
const DESCRIPTORS: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
int main(void) {
    struct rlimit limit;
    char text[64];
    void *volatile block = malloc(100);
    free(block);
    if (getrlimit(RLIMIT_NOFILE, &limit)) return 1;
    write(1, text, snprintf(text, sizeof text, "limit %lu\n", (unsigned long)limit.rlim_cur)) > 0 || (exit(2), 0);
    for (int file = 0; file < 1 << 20; file++)
        if (fcntl(file, F_GETFD) >= 0) write(1, text, snprintf(text, sizeof text, "%d\n", file)) > 0 || (exit(2), 0);
    return 0;
}
"#;

#[test]
fn the_program_has_no_descriptor_of_ours() {
    let workshop = Workshop::new("descriptors");
    let program = build_text(workshop.path(), "descriptors", DESCRIPTORS);
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    let bare = session.bare().well().stdout;
    assert!(bare.contains("\n0\n1\n2\n"), "{bare}");
    assert_eq!(session.record().well().stdout, bare);
    assert_eq!(session.stat().0.well().stdout, bare);
}

/// Prints what a preloaded library might leave changed.
const STATE: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void say(const char *name, long value) {
    char text[96];
    int length = snprintf(text, sizeof text, "%s %ld\n", name, value);
    if (write(1, text, length) != length) _exit(90);
}
static void *calls(void *argument) {
    const char *name = argument;
    errno = 77;
    void *volatile p = malloc(10);
    say(name, errno);
    p = realloc(p, 100000);
    say(name, errno);
    free(p);
    say(name, errno);
    p = calloc(3, 4);
    free(p);
    free(NULL);
    say(name, errno);
    volatile size_t too_much = (size_t)-1 / 2 + 1;
    p = malloc(too_much);
    say("failed malloc errno", errno);
    errno = 77;
    void *volatile q = NULL;
    say("posix_memalign", posix_memalign((void **)&q, 3, 10));
    say("posix_memalign errno", errno);
    return NULL;
}
int main(void) {
    say("errno at start", errno);
    const char *error = dlerror();
    say("dlerror at start", error != NULL);
    sigset_t set;
    sigprocmask(SIG_BLOCK, NULL, &set);
    for (int number = 1; number < 65; number++) {
        struct sigaction action;
        if (sigismember(&set, number) == 1) say("blocked", number);
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL) say("handled", number);
    }
    calls("main");
    say("dlerror after calls", dlerror() != NULL);
    pthread_t thread;
    if (pthread_create(&thread, NULL, calls, "thread") || pthread_join(thread, NULL)) return 1;
    stack_t alternate;
    sigaltstack(NULL, &alternate);
    say("alternate stack", alternate.ss_flags != SS_DISABLE);
    dlsym(RTLD_DEFAULT, "no_such_symbol");
    void *volatile kept = malloc(5);
    free(kept);
    error = dlerror();
    say("dlerror is kept over malloc", error && strstr(error, "no_such_symbol") != NULL);
    return 0;
}
"#;

#[test]
fn errno_dlerror_and_signals_are_untouched() {
    let workshop = Workshop::new("state");
    let program = build_text(workshop.path(), "state", STATE);
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    let bare = session.bare().well().stdout;
    assert!(bare.starts_with("errno at start 0\ndlerror at start 0\n"), "{bare}");
    assert!(
        bare.contains("main 77\n") && bare.contains("thread 77\n") && bare.ends_with("malloc 1\n"),
        "{bare}"
    );
    assert_eq!(session.record().well().stdout, bare);
    assert_eq!(session.stat().0.well().stdout, bare);
}

/// `nohup mallow record app` must behave like `nohup app`.
#[test]
fn signals_that_are_ignored_stay_so() {
    let workshop = Workshop::new("ignored");
    let program = build_text(workshop.path(), "state", STATE);
    let under_trap = |observer: &str| {
        let line = format!("trap '' HUP TERM INT QUIT; exec {observer} {}", program.display());
        run::finish(run::command("sh").args(["-c", &line]).current_dir(workshop.path())).well().stdout
    };
    let bare = under_trap("");
    assert!(
        ["handled 1\n", "handled 2\n", "handled 3\n", "handled 15\n"].iter().all(|line| bare.contains(line)),
        "{bare}"
    );
    let mallow = run::mallow_binary().to_string_lossy().into_owned();
    assert_eq!(under_trap(&format!("{mallow} record -o t.mallow --")), bare);
    assert_eq!(under_trap(&format!("{mallow} stat --")), bare);
}

#[test]
fn a_child_that_outlives_its_parent_does_not_keep_mallow_from_ending_right() {
    let workshop = Workshop::new("orphan");
    let session = Session::new(workshop.path(), &["/bin/sh", "-c", "(sleep 0.3; echo late) & echo early"]);
    let recorded = session.record().well();
    assert_eq!(recorded.stdout.lines().next(), Some("early"), "{recorded}");
    assert_eq!(session.report(&[])["complete"], true);
}

/// The limit is too low for the shared memory: the program is not recorded, and does not notice.
#[test]
fn a_limit_on_files_kills_nobody() {
    let workshop = Workshop::new("file-limit");
    let script = "ulimit -f 100; /bin/ls / | wc -l; echo still here";
    let session = Session::new(workshop.path(), &["/bin/sh", "-c", script]);
    let bare = session.bare().well().stdout;
    assert!(bare.ends_with("still here\n"), "{bare}");
    assert_eq!(session.record().well().stdout, bare);
    assert_eq!(session.stat().0.well().stdout, bare);
}

/// More live threads than there are channels. Their calls are counted as lost, and do not wait: each of them used to
/// wait for seconds.
#[test]
fn threads_beyond_the_table_are_counted_and_do_not_wait() {
    const THREADS: u64 = 4200;
    let workshop = Workshop::new("many-threads");
    let program = build_text(workshop.path(), "threads", MANY_THREADS);
    let session = Session::new(workshop.path(), &[&program.to_string_lossy(), &THREADS.to_string()]);
    let recorded = session.record().well();
    let report = session.report(&[]);
    let rows = e2e::stacks::of_site(&report, &serde_json::json!({"function": "work"}), workshop.path());
    let recorded_calls: u64 = rows.iter().map(|row| metric(row, "allocations")).sum();
    // Each thread makes and frees ten blocks; libc's own block for each thread is made by main.
    assert!((10 * 4000..10 * THREADS).contains(&recorded_calls), "{recorded_calls}\n{recorded}");
    let lost: u64 = recorded.stderr.lines().filter_map(lost_events).sum();
    let missing = 2 * (10 * THREADS - recorded_calls);
    // libc may free a block of another thread in one that is not recorded.
    let unrecorded_threads = THREADS - recorded_calls / 10;
    assert!((missing..=missing + unrecorded_threads).contains(&lost), "{lost} and {missing}\n{recorded}");
}

/// Returns the number in `… 123 events were not recorded …`.
fn lost_events(line: &str) -> Option<u64> {
    let before = line.split(" events were not recorded").next().filter(|before| before.len() < line.len())?;
    before.split_whitespace().last()?.replace(',', "").parse().ok()
}

const MANY_THREADS: &str = "#include <pthread.h>\n#include <stdlib.h>\n\
static pthread_barrier_t all;\n\
__attribute__((noinline)) static void work(void) {\n\
    for (int i = 0; i < 10; i++) { void *p = malloc(24); __asm__ volatile(\"\" : : \"r\"(p) : \"memory\"); free(p); }\n\
}\n\
static void *run(void *none) { work(); pthread_barrier_wait(&all); return none; }\n\
int main(int count, char **words) {\n\
    int threads = atoi(words[count - 1]);\n\
    pthread_attr_t small;\n\
    pthread_attr_init(&small);\n\
    pthread_attr_setstacksize(&small, 65536);\n\
    pthread_barrier_init(&all, NULL, threads + 1);\n\
    for (int i = 0; i < threads; i++) { pthread_t id; if (pthread_create(&id, &small, run, NULL)) return 9; pthread_detach(id); }\n\
    pthread_barrier_wait(&all);\n\
    return 0;\n\
}\n";
