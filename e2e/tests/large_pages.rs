//! A kernel that backs all memory with large pages, as most distributions' do (`transparent_hugepage/enabled` is `always`), backs none of the recorder's with
//! them: a thread of whose tables a few pages are touched would take 4 MiB.

use e2e::run::{self, Finished};
use e2e::{Exit, Workshop, program};
use std::path::Path;

/// Three threads besides the first one allocate. Prints how many MiB of all writable mappings could be large pages: whole ones of 2 MiB, of mappings that
/// are not marked with `nh`.
const THREADS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_barrier_t all;

static void *allocate(void *unused) {
    for (int i = 0; i < 1000; i++) { void *volatile block = malloc(100); free(block); }
    pthread_barrier_wait(&all);
    pthread_barrier_wait(&all);
    return unused;
}

int main(void) {
    pthread_t threads[3];
    pthread_barrier_init(&all, NULL, 4);
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, allocate, NULL);
    pthread_barrier_wait(&all);
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[4096];
    unsigned long start = 0, end = 0, large = 0, ours = 0;
    const unsigned long bytes = 2ul << 20;
    while (fgets(line, sizeof line, maps)) {
        char rights[8];
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3) {
            start = (from + bytes - 1) / bytes, end = to / bytes;
            if (rights[1] != 'w') end = 0;
        } else if (strncmp(line, "VmFlags:", 8) == 0 && end > start) {
            if (strstr(line, " nh")) ours++; else large += end - start;
        }
    }
    printf("%lu %d\n", 2 * large, ours > 0);
    pthread_barrier_wait(&all);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    return 0;
}
"#;

/// The MiB that the program prints, and whether any memory of whole large pages is marked.
fn printed(finished: &Finished) -> (u64, bool) {
    let (mib, is_marked) = finished.stdout.trim().split_once(' ').unwrap_or_else(|| panic!("{finished}"));
    (mib.parse().unwrap(), is_marked == "1")
}

#[test]
fn none_of_a_recorders_memory_is_backed_by_large_pages() {
    // Where the kernel has none there is nothing to mark.
    let has_large_pages = Path::new("/sys/kernel/mm/transparent_hugepage").exists();
    let workshop = Workshop::new("large-pages");
    for flags in [&[][..], &["-static"]] {
        let threads = program::build_text_with(workshop.path(), "threads", THREADS, flags);
        let (bare, _) = printed(&run::finish(&mut run::command(&threads)).ended(Exit::Status(0)));
        for verb in ["record", "stat"] {
            let file = workshop.file("output");
            let mut mallow = run::command(run::mallow_binary());
            mallow.args([verb, "--force", "-o"]).arg(file).arg("--").arg(&threads);
            let finished = run::finish(&mut mallow).ended(Exit::Status(0));
            let (mib, is_marked) = printed(&finished);
            assert!(mib <= bare && is_marked || !has_large_pages, "{flags:?}: {bare} MiB bare\n{finished}");
        }
    }
}
