//! A program that locks all of its memory locks its own, and finds it locked as without mallow: the recorder's, gigabytes of which it touches a few pages, stays as it is.

use e2e::run::{self, Finished};
use e2e::session::{json, report_of};
use e2e::{Exit, Workshop, program};

/// Locks its memory: the first word is the flags, the second a user without rights, for whom the limit on locked memory holds, or 0, the third how it calls: by `syscall`, in a forked child before anything else, or so. Prints
/// what the call returned, how many pages of two blocks of 4 MiB are resident that nobody touched, one mapped before the call and one after it, and what is
/// locked of its memory beside stacks, in KiB. Then threads allocate.
const LOCKS: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES (4ul << 20)

static void *allocate(void *unused) {
    for (int i = 0; i < 1000; i++) { void *volatile block = malloc(100); free(block); }
    return unused;
}

static int resident(void *block) {
    unsigned char pages[BYTES / 4096];
    int count = 0;
    if (mincore(block, BYTES, pages)) return -1;
    for (unsigned long i = 0; i < sizeof pages; i++) count += pages[i] & 1;
    return count;
}

static void *map(void) {
    void *block = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? NULL : block;
}

static unsigned long kib(const char *name) {
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    unsigned long value = 0;
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0) value = strtoul(line + strlen(name), NULL, 10);
    fclose(file);
    return value;
}

int main(int count, char **words) {
    if (count < 4) return 9;
    int flags = atoi(words[1]), user = atoi(words[2]), direct = words[3][0] == 's';
    if (user && setuid(user)) return 8;
    if (words[3][0] == 'f' && fork()) {
        int status = 0;
        wait(&status);
        return WIFEXITED(status) ? WEXITSTATUS(status) : 6;
    }
    void *before = map();
    long answer = direct ? syscall(SYS_mlockall, flags) : mlockall(flags);
    void *after = map();
    printf("%ld %d %d", answer, resident(before), after ? resident(after) : -1);
    printf(" %lu %lu\n", kib("VmLck:"), kib("VmRSS:"));
    munlockall();
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, allocate, NULL)) return 7;
        pthread_join(thread, NULL);
    }
    return 0;
}
"#;

/// What the call returned with what is resident of each block; what is locked, and resident of the program in all, in KiB.
fn printed(finished: &Finished) -> (String, [u64; 2]) {
    let words: Vec<&str> = finished.stdout.split_whitespace().collect();
    let [answer, before, after, locked, resident] = words[..] else { panic!("{finished}") };
    (format!("{answer} {before} {after}"), [locked, resident].map(|kib| kib.parse().unwrap()))
}

#[test]
fn a_program_locks_its_own_memory_and_nothing_of_the_recorders() {
    const MORE_KIB_MAX: u64 = 8 << 10;
    let workshop = Workshop::new("locks");
    let locks = program::build_text(workshop.path(), "locks", LOCKS);
    let is_root = own_uid() == 0;
    // Now, from now on, both, and each with `MCL_ONFAULT`.
    for flags in ["1", "2", "3", "5", "7"] {
        for user in ["0", "65534"].into_iter().filter(|user| is_root || *user == "0") {
            for way in ["mlockall", "syscall", "forked"] {
                let words = [flags, user, way];
                let bare = run::finish(run::command(&locks).args(words)).ended(Exit::Status(0));
                let (expected, [locked, resident]) = printed(&bare);
                assert!(expected.starts_with("0 ") || !is_root, "{bare}");
                for verb in ["record", "stat"] {
                    let file = workshop.file("output");
                    let mut mallow = run::command(run::mallow_binary());
                    mallow.args([verb, "--force", "-o"]).arg(&file).arg("--").arg(&locks).args(words);
                    let finished = run::finish(&mut mallow).ended(Exit::Status(0));
                    let (found, [locked_now, resident_now]) = printed(&finished);
                    assert_eq!(found, expected, "{flags}\n{bare}\n{finished}");
                    let more = [locked_now.saturating_sub(locked), resident_now.saturating_sub(resident)];
                    let is_small = more.into_iter().all(|kib| kib < MORE_KIB_MAX);
                    assert!(is_small, "{flags}: {more:?} KiB more\n{bare}\n{finished}");
                    // By the limit there may be no room for what a thread of ours takes. Then its calls are lost, and counted.
                    if verb == "record" && is_root && user == "0" {
                        let document = json(&report_of(&file, &[]).well().stdout);
                        assert_eq!(document["complete"], true, "{document:#}");
                    }
                }
            }
        }
    }
}

/// The user who runs this.
fn own_uid() -> u32 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").unwrap().uid()
}
