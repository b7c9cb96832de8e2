//! Programs that are started behind a filter of system calls (seccomp): each ends as it ends without mallow, whatever the filter is against, and is recorded or named.

use e2e::program::{build_text, build_text_with};
use e2e::run;
use e2e::{Exit, Session, Workshop};
use serde_json::Value;
use std::ffi::OsStr;

const STARTS: &str = include_str!("../../programs/hazards/filtered_starts.c");
const REASON: &str =
    "it was started behind a filter of system calls (seccomp) that does not let through what mallow needs";

/// Every so many of the kernel's system calls, from one on.
#[derive(Clone, Copy)]
struct Calls {
    first: u64,
    every: u64,
}

const ALL: Calls = Calls { first: 0, every: 1 };
/// Every third one, and for each way of starting programs others: together they are all. Each way with all of them is run by `cargo xtask long`.
const THIRDS: [Calls; 3] =
    [Calls { first: 0, every: 3 }, Calls { first: 1, every: 3 }, Calls { first: 2, every: 3 }];

/// One child for each of these system calls, behind a filter against it, once bare and under `cpu` with events and with timers, `record` and `stat`. `is_told` judges how many children ended well, how
/// many allocations there are, and how many processes are named for the filter.
#[track_caller]
fn each_call(way: &str, calls: Calls, is_told: impl Fn(u64, u64, u64) -> bool) {
    let [first, every] = [calls.first, calls.every].map(|number| number.to_string());
    let workshop = Workshop::new("filters");
    let program = build_text(workshop.path(), "starts", STARTS);
    for action in ["kill", "refuse"] {
        let words = [&program.to_string_lossy(), action, way, &first, &every];
        of_session(&Session::new(workshop.path(), &words), 400 / calls.every, &is_told);
    }
}

#[track_caller]
fn of_session(session: &Session, well_least: u64, is_told: impl Fn(u64, u64, u64) -> bool) {
    let bare = session.bare();
    assert_eq!(bare.exit, Exit::Status(0), "{bare}");
    let well = bare.stdout.lines().filter(|line| line.ends_with(" 700")).count() as u64;
    assert!(well > well_least, "{bare}");
    let profile = session.trace().with_extension("cpu");
    // Timers make more calls, which matters where they kill.
    let kills = session.words().iter().any(|word| word == "kill");
    let events: &[&[&str]] = if kills { &[&[], &["-e", "timers"]] } else { &[&[]] };
    for event in events {
        let mut words: Vec<&OsStr> = vec!["cpu".as_ref(), "--force".as_ref()];
        words.extend(event.iter().map(OsStr::new));
        words.extend(["-o".as_ref(), profile.as_os_str(), "--".as_ref()]);
        let sampled = session.under(run::mallow(), &words);
        assert_eq!((sampled.exit, &sampled.stdout), (bare.exit, &bare.stdout), "{sampled}");
    }

    let recorded = session.record();
    let report = session.report(&[]);
    let (counted, stat) = session.stat();
    for (observed, document, run) in [(&recorded, &report, &report), (&counted, &stat, &stat["runs"][0])] {
        assert_eq!((observed.exit, &observed.stdout), (bare.exit, &bare.stdout), "{observed}");
        assert!(!observed.stderr.contains("cannot be preloaded"), "{observed}");
        let allocations = run["totals"]["allocations"].as_u64().unwrap();
        let named = named(&document["warnings"]);
        assert!(
            is_told(well, allocations, named),
            "{well} ended well, {allocations} allocations, {named} named: {:#}",
            document["warnings"]
        );
    }
}

/// How many processes the warnings name for the filter.
fn named(warnings: &Value) -> u64 {
    let of = |text: &Value| match text.as_str().filter(|text| text.ends_with(REASON)) {
        None => 0,
        Some(text) => text.split_once(" processes (").map_or(1, |(count, _)| count.parse().unwrap()),
    };
    warnings.as_array().unwrap().iter().map(of).sum()
}

/// Each child makes a hundred allocations, and the others together the one of their output.
fn is_recorded_or_named(well: u64, allocations: u64, named: u64) -> bool {
    let recorded = allocations / 100;
    allocations % 100 == 1 && recorded > named && named > 3 && recorded + named >= well
}

#[test]
fn who_takes_its_own_place_behind_a_filter_ends_as_it_would() {
    each_call("at-once", THIRDS[0], is_recorded_or_named);
}

#[test]
fn who_forks_children_that_start_programs_behind_a_filter_is_told_of_them() {
    each_call("forked", THIRDS[1], is_recorded_or_named);
}

#[test]
fn who_spawns_programs_behind_a_filter_is_told_of_them() {
    each_call("spawned", THIRDS[2], is_recorded_or_named);
}

/// Libc starts the shell past every function that is exported.
#[test]
fn whose_shells_start_programs_behind_a_filter_is_told_of_them() {
    each_call("shell", THIRDS[0], is_told_of_shells);
    each_call("popen", THIRDS[1], is_told_of_shells);
}

/// The shell allocates as well, but less than the program.
fn is_told_of_shells(well: u64, allocations: u64, named: u64) -> bool {
    named > 3 && (well - named) * 100 < allocations && allocations < well * 200
}

#[test]
#[ignore = "a minute: in `cargo xtask long`"]
fn whatever_a_filter_is_against_each_way_of_starting_is_recorded_or_named() {
    for way in ["at-once", "forked", "spawned"] {
        each_call(way, ALL, is_recorded_or_named);
    }
    for way in ["shell", "popen"] {
        each_call(way, ALL, is_told_of_shells);
    }
    each_call("no", ALL, is_recorded_as_before);
}

/// What else is preloaded is the program's affair.
#[test]
fn the_library_alone_is_taken_out_of_the_environment() {
    let workshop = Workshop::new("environment");
    let text = r#"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
extern char **environ;
int main(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 9;
    return system("echo $LD_PRELOAD; exit 3") >> 8;
}
"#;
    let program = build_text(workshop.path(), "environment", text);
    let other = build_text_with(workshop.path(), "other.so", "int other = 1;\n", &["-shared", "-fPIC"]);
    for preloads in [None, Some(other.to_string_lossy())] {
        let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
        let session = match preloads {
            Some(list) => session.env("LD_PRELOAD", &list),
            None => session,
        };
        let bare = session.bare();
        assert_eq!(bare.exit, Exit::Status(3), "{bare}");
        for observed in [session.record(), session.stat().0] {
            assert_eq!((observed.exit, &observed.stdout), (bare.exit, &bare.stdout), "{observed}");
        }
    }
}

/// One that the kernel does not take, and one that a thread sets for itself alone.
#[test]
fn what_no_filter_is_in_front_of_is_recorded() {
    let workshop = Workshop::new("no-filter");
    let text = r#"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static int set(unsigned short count) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {count, filter};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}
static void *run(void *unused) {
    return set(4) == 0 ? unused : NULL;
}
static void *allocate(void *unused) {
    for (int i = 0; i < 100; i++) { void *volatile block = malloc(10); free(block); }
    return unused;
}
static void start(char *path) {
    int status = 1;
    char *own[] = {path, "child", NULL};
    if (fork() == 0) execv(path, own), _exit(8);
    if (wait(&status) < 0 || status != 0 || system("exit 0") != 0) _exit(9);
}
int main(int count, char **words) {
    if (count > 1) {
        allocate(NULL);
        return 0;
    }
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (set(3) == 0) return 4;
    start(words[0]);
    pthread_t thread;
    void *answer = NULL;
    if (pthread_create(&thread, NULL, allocate, NULL) || pthread_join(thread, NULL)) return 6;
    if (pthread_create(&thread, NULL, run, words) || pthread_join(thread, &answer) || answer != words) return 5;
    start(words[0]);
    return 3;
}
"#;
    let program = build_text(workshop.path(), "no-filter", text);
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    let (bare, recorded) = (session.bare(), session.record());
    assert_eq!((bare.exit, recorded.exit), (Exit::Status(3), Exit::Status(3)), "{recorded}");
    let report = session.report(&[]);
    assert_eq!(named(&report["warnings"]), 0, "{report:#}");
    let children = report["processes"].as_array().unwrap().iter();
    let of_children = children.filter(|process| process["command"].to_string().contains("no-filter child"));
    assert_eq!(
        of_children.map(|process| process["totals"]["allocations"].clone()).collect::<Vec<_>>(),
        [100, 100]
    );
    // The thread's, in the program itself.
    assert!(report["sites"].to_string().contains("\"function\":\"allocate\""), "{report:#}");
    assert!(report["totals"]["temporary"].as_u64() >= Some(300), "{report:#}");
}

/// With a thread, and with a forked child, which is recorded like any other where the filter is against none of our calls.
#[test]
fn who_goes_on_behind_a_filter_is_recorded_there() {
    each_call("no", THIRDS[2], is_recorded_as_before);
}

/// Few children cannot fork, and have no child of their own.
fn is_recorded_as_before(well: u64, allocations: u64, named: u64) -> bool {
    allocations > well * 35_290 && named == 0
}

/// A thread that comes to many stacks has memory mapped for them: not behind a filter, which may kill for that.
#[test]
fn whoever_has_many_stacks_behind_a_filter_goes_on() {
    let workshop = Workshop::new("filtered-stacks");
    let text = r#"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
static void *volatile kept;
static volatile int turned;
static __attribute__((noinline)) void work(unsigned path, int depth) {
    if (depth == 0) {
        kept = malloc(10);
        free(kept);
    } else if (path & 1) {
        work(path >> 1, depth - 1);
        turned = 1;
    } else {
        work(path >> 1, depth - 1);
        turned = 2;
    }
}
int main(void) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {4, filter};
    work(0, 0);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) return 9;
    for (unsigned path = 0; path < 4096; path++) work(path, 12);
    return 3;
}
"#;
    let program = build_text(workshop.path(), "stacks", text);
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    let (bare, recorded) = (session.bare(), session.record());
    assert_eq!((bare.exit, recorded.exit), (Exit::Status(3), Exit::Status(3)), "{recorded}");
    let report = session.report(&["--limit", "10000"]);
    assert_eq!(report["totals"]["temporary"], 4097, "{recorded}");
    assert_eq!(report["sites"].as_array().unwrap().len(), 4097, "{recorded}");
}
