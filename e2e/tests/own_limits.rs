//! A program that limits its own memory has as much of it as without mallow, sees the limit that it has set, and gives it to the program that takes its place.

use e2e::program::build_text;
use e2e::run::{self, Finished};
use e2e::session::{json, report_of};
use e2e::{Exit, Workshop};

/// Limits the resource of the first word to a GiB, by `prlimit` if the second one says so, in a forked child if it says that. Prints what the calls tell of the limit, in MiB, and then how
/// many blocks of a MiB there are. Behind that it executes itself, which prints the limit.
const LIMITS: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void *allocate(void *unused) {
    for (int i = 0; i < 1000; i++) { void *volatile block = malloc(100); free(block); }
    return unused;
}

int main(int count, char **words) {
    int resource = atoi(words[1]);
    struct rlimit limit = {1ul << 30, 1ul << 30}, before, now, again;
    if (count < 3) {
        getrlimit(resource, &now);
        printf("%lu\n", now.rlim_cur >> 20);
        return 0;
    }
    if (words[2][0] == 'f' && fork()) {
        int status = 0;
        wait(&status);
        return WEXITSTATUS(status);
    }
    getrlimit(resource, &before);
    if (words[2][0] == 'p' ? prlimit(0, resource, &limit, &again) : setrlimit(resource, &limit)) return 8;
    if (words[2][0] == 'p' && again.rlim_max != before.rlim_max) return 7;
    getrlimit(resource, &now);
    prlimit(getpid(), resource, NULL, &again);
    printf("%lu %lu %lu %lu\n", now.rlim_cur >> 20, now.rlim_max >> 20, again.rlim_cur >> 20, again.rlim_max >> 20);
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, allocate, NULL)) return 6;
        pthread_join(thread, NULL);
    }
    // One that fails changes nothing.
    char *own[] = {words[0], words[1], NULL};
    execv("/nowhere", own);
    void **blocks = NULL, **block;
    int mib = 0;
    while ((block = malloc(1 << 20))) { *block = blocks; blocks = block; mib++; }
    printf("%d\n", mib);
    for (; blocks; blocks = block) { block = *blocks; free(blocks); }
    fflush(stdout);
    execv(words[0], own);
    return 5;
}
"#;

/// What the program saw of its limit, and how many MiB it had.
fn seen(finished: &Finished) -> (String, u64) {
    let lines: Vec<&str> = finished.stdout.lines().collect();
    let [limits, mib, behind] = lines[..] else { panic!("{finished}") };
    (format!("{limits}, {behind}"), mib.parse().unwrap())
}

#[test]
fn a_program_that_limits_its_memory_has_as_much_of_it_as_without_mallow() {
    const ADDRESSES: &str = "9";
    const DATA: &str = "2";
    let workshop = Workshop::new("own-limits");
    let limits = build_text(workshop.path(), "limits", LIMITS);
    for resource in [ADDRESSES, DATA] {
        for way in ["setrlimit", "prlimit", "forked"] {
            let bare = run::finish(run::command(&limits).args([resource, way])).ended(Exit::Status(0));
            let (expected, mib) = seen(&bare);
            assert_eq!(expected, "1024 1024 1024 1024, 1024", "{bare}");
            for verb in ["record", "stat"] {
                let file = workshop.file("output");
                let mut mallow = run::command(run::mallow_binary());
                mallow.args([verb, "--force", "-o"]).arg(&file).arg("--").arg(&limits).args([resource, way]);
                let finished = run::finish(&mut mallow).ended(Exit::Status(0));
                let (found, mib_now) = seen(&finished);
                assert_eq!(found, expected, "{finished}");
                // A forked child has memory of the recorder's of its own, for which the hard limit may have no room.
                let least = if way == "forked" { mib * 2 / 3 } else { mib - 16 };
                assert!((least..=mib + 16).contains(&mib_now), "{mib} MiB bare, {mib_now} now\n{finished}");
                if verb == "record" {
                    let document = json(&report_of(&file, &[]).well().stdout);
                    assert_eq!(document["complete"], true, "{document:#}");
                }
            }
        }
    }
}

/// Limits and locks its memory, and is killed from then on by each of the system calls with which that is done. Then a thread allocates.
const FILTERED: &str = r#"
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KILL(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

static void *allocate(void *unused) {
    for (int i = 0; i < 1000; i++) { void *volatile block = malloc(100); free(block); }
    return unused;
}

int main(int count, char **words) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        KILL(SYS_prlimit64), KILL(SYS_setrlimit), KILL(SYS_getpid), KILL(SYS_mlock), KILL(SYS_mlock2), KILL(SYS_munlock), KILL(SYS_mlockall),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    struct rlimit limit = {4ul << 30, 4ul << 30};
    pthread_t thread;
    if (count > 1 || !words[0]) return 3;
    if (setrlimit(RLIMIT_AS, &limit) || setrlimit(RLIMIT_DATA, &limit)) return 9;
    // Without the right to it the limit may be too low.
    mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return 8;
    if (pthread_create(&thread, NULL, allocate, NULL)) return 7;
    pthread_join(thread, NULL);
    return 4;
}
"#;

#[test]
fn behind_a_filter_no_limit_is_touched() {
    let workshop = Workshop::new("filtered-limits");
    let filtered = build_text(workshop.path(), "filtered", FILTERED);
    let _ = run::finish(&mut run::command(&filtered)).ended(Exit::Status(4));
    for verb in ["record", "stat"] {
        let mut mallow = run::command(run::mallow_binary());
        mallow.args([verb, "--force", "-o"]).arg(workshop.file("output")).arg("--").arg(&filtered);
        let _ = run::finish(&mut mallow).ended(Exit::Status(4));
    }
}
