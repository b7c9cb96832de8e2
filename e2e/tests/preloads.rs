//! Libraries that are preloaded beside mallow's: allocators that a start script puts in front of it or in its place, what must be the first itself, and
//! valgrind, whose tools lead every call to their own functions.

use e2e::program::{build_text, build_text_with};
use e2e::run::{self, Exit, Finished};
use e2e::session::metric;
use e2e::{Session, Workshop, stacks};
use serde_json::Value;

/// Counts its calls, and gives what the next one gives.
const FRONT: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
int front_calls;
void *malloc(size_t bytes) {
    static void *(*next)(size_t);
    if (!next) next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    front_calls++;
    return next(bytes);
}
"#;

/// As an allocator: blocks of its own, which nobody behind it knows.
const ALLOCATOR: &str = r#"
#include <stddef.h>
#include <string.h>
int front_calls;
static char room[1 << 20];
static size_t taken;
void *malloc(size_t bytes) {
    size_t *block = (size_t *)(room + taken);
    taken += 16 + (bytes + 15) / 16 * 16;
    front_calls++;
    *block = bytes;
    return block + 2;
}
void *calloc(size_t count, size_t bytes) { return malloc(count * bytes); }
void *realloc(void *block, size_t bytes) {
    void *other = malloc(bytes);
    size_t before = block ? ((size_t *)block)[-2] : 0;
    return block ? memcpy(other, block, before < bytes ? before : bytes) : other;
}
void free(void *block) { (void)block; }
"#;

/// Makes 1,000 calls, of which it frees 900, and says whether they went to the library.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
__attribute__((weak)) extern int front_calls;
__attribute__((noinline)) static void grow(void) {
    for (int i = 0; i < 1000; i++) {
        void *volatile block = malloc(100 + i % 7);
        if (i % 10) free(block);
    }
}
int main(void) {
    grow();
    printf("%s\n", &front_calls && front_calls >= 1000 ? "in front" : "alone");
    return 3;
}
"#;

struct Built {
    workshop: Workshop,
    program: String,
    libraries: Vec<String>,
}

fn built(name: &str, libraries: &[(&str, &str)]) -> Built {
    let workshop = Workshop::new(name);
    let text = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
    let program = text(build_text(workshop.path(), "program", PROGRAM));
    let libraries = libraries
        .iter()
        .map(|(name, source)| {
            text(build_text_with(workshop.path(), name, source, &["-shared", "-fPIC", "-ldl"]))
        })
        .collect();
    Built { workshop, program, libraries }
}

impl Built {
    fn shell(&self, script: &str) -> Session {
        Session::new(self.workshop.path(), &["/bin/sh", "-c", script])
    }
}

/// The path of a sanitizer's runtime.
fn sanitizer() -> String {
    let mut compiler = run::command("cc");
    let file = run::finish(compiler.arg("-print-file-name=libasan.so")).well().stdout;
    std::fs::canonicalize(file.trim()).unwrap().to_string_lossy().into_owned()
}

/// Sentences about what is not whole. Programs of the system are stripped, which is reported too.
fn said(document: &Value) -> Vec<&str> {
    let all = document["warnings"].as_array().unwrap().iter().map(|text| text.as_str().unwrap());
    all.filter(|text| text.starts_with("process")).collect()
}

/// Allocations, bytes and leaked blocks of the stacks whose innermost function is `grow`.
fn of_grow(report: &Value) -> [u64; 3] {
    let sites = report["sites"].as_array().into_iter().flatten();
    let of_grow: Vec<&Value> =
        sites.filter(|site| stacks::names(site).first().is_some_and(|name| name == "grow")).collect();
    ["allocations", "bytes", "leaked_blocks"].map(|name| of_grow.iter().map(|site| metric(site, name)).sum())
}

/// `LD_PRELOAD=libjemalloc.so exec server`, as start scripts have it, and the same in front of what is there.
#[test]
fn a_library_that_a_script_preloads_in_front_or_instead_is_called_behind_mallows() {
    let built = built("preloads-script", &[("libfront.so", FRONT), ("libown.so", ALLOCATOR)]);
    let (program, [front, own]) = (&built.program, &built.libraries[..]) else { unreachable!() };
    let jemalloc = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2";
    let lists = [
        format!("{front}:$LD_PRELOAD"),
        format!("'{front} {jemalloc}'"),
        own.clone(),
        format!("{own}:{front}:$LD_PRELOAD"),
    ];
    for list in &lists {
        // dash starts a program by `vfork`; `env` by `execvp`, with an environment that it has changed.
        for script in [
            format!("LD_PRELOAD={list} {program}"),
            format!("LD_PRELOAD={list} exec {program}"),
            format!("env LD_PRELOAD={list} {program}"),
            format!(
                "python3 -c 'import os, sys; p = os.posix_spawn(sys.argv[1], sys.argv[1:], dict(os.environ, LD_PRELOAD=sys.argv[2])); sys.exit(os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]))' {program} {list}"
            ),
        ] {
            let session = built.shell(&script);
            let bare = session.bare().ended(Exit::Status(3));
            let recorded = session.record().ended(Exit::Status(3));
            let report = session.report(&[]);
            assert_eq!((recorded.stdout.trim(), bare.stdout.trim()), ("in front", "in front"), "{recorded}");
            assert_eq!(said(&report), [""; 0], "{script}: {report:#}");
            assert_eq!(report["complete"], true, "{script}");
            assert_eq!(of_grow(&report), [1000, 102_997, 100], "{script}");
        }
    }
}

/// Programs that start themselves anew until `LD_PRELOAD` is as they want it: alone, or with theirs as the first.
#[test]
fn a_program_that_asks_for_the_same_library_again_gets_it_as_it_asks() {
    let built = built("preloads-again", &[("libfront.so", FRONT)]);
    let text = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words) {
    if (count < 3) return 8;
    const char *list = getenv("LD_PRELOAD"), *lib = words[1];
    char next[8192];
    int is_alone = *words[2] == 'a';
    if (list && (is_alone ? !strcmp(list, lib) : !strncmp(list, lib, strlen(lib)))) {
        puts("settled");
        return 3;
    }
    if (count > 20) return 9;
    snprintf(next, sizeof next, "%s%s%s", lib, is_alone || !list ? "" : ":", is_alone || !list ? "" : list);
    setenv("LD_PRELOAD", next, 1);
    char *more[32] = {0};
    memcpy(more, words, count * sizeof *words);
    more[count] = "again";
    execv(words[0], more);
    return 7;
}
"#;
    let program = build_text(built.workshop.path(), "again", text);
    for way in ["alone", "first"] {
        let session =
            Session::new(built.workshop.path(), &[&program.to_string_lossy(), &built.libraries[0], way]);
        let bare = session.bare().ended(Exit::Status(3));
        let recorded = session.record().ended(Exit::Status(3));
        assert_eq!(recorded.stdout, bare.stdout, "{way}");
        // Where it settled, the library comes first or is alone.
        assert_eq!(session.report(&[])["complete"], false, "{way}: {recorded}");
    }
}

/// The list is not made on the caller's stack: a thread may have a small one.
#[test]
fn a_thread_with_a_small_stack_starts_a_program_with_another_list() {
    let built = built("preloads-small", &[("libfront.so", FRONT)]);
    let text = r#"
#include <limits.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
extern char **environ;
static char **given;
static int status = -1;
static void *start(void *unused) {
    char *words[] = {given[1], NULL};
    pid_t pid;
    if (posix_spawn(&pid, given[1], NULL, NULL, words, environ) == 0) waitpid(pid, &status, 0);
    return unused;
}
int main(int count, char **words) {
    given = words;
    pthread_attr_t small;
    pthread_t thread;
    if (count < 3 || setenv("LD_PRELOAD", words[2], 1) || pthread_attr_init(&small)) return 8;
    if (pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN)) return 7;
    if (pthread_create(&thread, &small, start, NULL) || pthread_join(thread, NULL)) return 6;
    return WEXITSTATUS(status);
}
"#;
    let program = build_text(built.workshop.path(), "small", text);
    let session = Session::new(
        built.workshop.path(),
        &[&program.to_string_lossy(), &built.program, &built.libraries[0]],
    );
    let bare = session.bare().ended(Exit::Status(3));
    let recorded = session.record().ended(Exit::Status(3));
    assert_eq!(recorded.stdout, bare.stdout);
    assert_eq!(of_grow(&session.report(&[])), [1000, 102_997, 100]);
}

/// What would not start with mallow's library in front of it, and what was meant to be without any.
#[test]
fn what_a_program_must_have_first_or_must_not_have_is_left_to_it() {
    let built = built("preloads-left", &[]);
    let program = &built.program;
    let sanitizer = sanitizer();
    for (list, sentence) in [
        (format!("LD_PRELOAD={sanitizer}"), "that does not hold LD_PRELOAD"),
        (format!("LD_PRELOAD={sanitizer}:$LD_PRELOAD"), "a library that is preloaded in front of mallow's"),
        ("LD_PRELOAD=".to_owned(), "that does not hold LD_PRELOAD"),
    ] {
        let session = built.shell(&format!("ASAN_OPTIONS=detect_leaks=0 {list} {program}"));
        let bare = session.bare().ended(Exit::Status(3));
        let recorded = session.record().ended(Exit::Status(3));
        assert_eq!(recorded.stdout, bare.stdout, "{recorded}");
        assert!(!recorded.stderr.contains("ASan"), "{recorded}");
        let report = session.report(&[]);
        let said = said(&report);
        assert!(said.len() == 1 && said[0].contains(sentence), "{list}: {said:#?}");
        assert_eq!(report["complete"], false, "{list}");
    }
}

/// mallow itself would put its library in front.
#[test]
fn a_command_that_is_started_with_a_sanitizers_runtime_is_refused() {
    let built = built("preloads-refused", &[]);
    let session = Session::new(built.workshop.path(), &[&built.program])
        .env("LD_PRELOAD", &sanitizer())
        .env("ASAN_OPTIONS", "detect_leaks=0");
    let _ = session.bare().ended(Exit::Status(3));
    let refused: Finished = session.record();
    let sentence = "LD_PRELOAD has the runtime of a sanitizer in it, which replaces the allocator and must be loaded first";
    assert!(refused.exit != Exit::Status(3) && refused.stderr.contains(sentence), "{refused}");
    assert_eq!(refused.stdout, "");
}

/// Only a recorded starter puts mallow's library in front again.
#[test]
fn a_library_that_an_unrecorded_program_preloads_in_front_is_spoken_of() {
    let built = built("preloads-unseen", &[("libown.so", ALLOCATOR)]);
    let starter = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) {
    if (count < 3) return 8;
    char list[8192];
    snprintf(list, sizeof list, "%s:%s", words[2], getenv("LD_PRELOAD") ? getenv("LD_PRELOAD") : "");
    setenv("LD_PRELOAD", list, 1);
    execl(words[1], words[1], (char *)0);
    return 9;
}
"#;
    let starter = build_text_with(built.workshop.path(), "starter", starter, &["-static"]);
    let (program, own) = (&built.program, &built.libraries[0]);
    let session = built.shell(&format!("{} {program} {own}", starter.display()));
    let _ = session.bare().ended(Exit::Status(3));
    let _ = session.record().ended(Exit::Status(3));
    let report = session.report(&[]);
    let sentence = "(program): a library that is preloaded in front of mallow's brings its own malloc, which is called in the place of mallow's, so its \
                    metrics are not those of its heap; have mallow's be the first in LD_PRELOAD";
    assert!(said(&report).iter().any(|text| text.contains(sentence)), "{report:#}");
    assert_eq!(report["complete"], false);
}

#[test]
fn a_program_under_valgrind_is_spoken_of_where_its_tool_replaces_malloc() {
    let built = built("preloads-valgrind", &[]);
    for (tool, is_replaced) in [("memcheck", true), ("massif", true), ("none", false)] {
        let words =
            ["valgrind", "-q", &format!("--tool={tool}"), "--massif-out-file=/dev/null", &built.program];
        let words: Vec<&str> =
            words.into_iter().filter(|word| tool == "massif" || !word.starts_with("--massif")).collect();
        let session = Session::new(built.workshop.path(), &words);
        let _ = session.record().ended(Exit::Status(3));
        let report = session.report(&[]);
        let sentence = "(program): valgrind brings its own malloc, to which it leads all calls, so its metrics are not those of its heap; record without \
                        valgrind";
        let is_said = said(&report).iter().any(|text| text.contains(sentence));
        assert_eq!(is_said, is_replaced, "{tool}: {report:#}");
        if !is_replaced {
            assert_eq!(of_grow(&report), [1000, 102_997, 100], "{tool}");
        }
    }
}
