//! What mallow makes the C library allocate in a program: 16 bytes more for each thread, and one block more where the program has just as many exit handlers
//! as the library holds without one.

use e2e::Workshop;
use e2e::program::build_text;
use e2e::run;

/// Has so many exit handlers and one thread more, and tells what the heap has in use.
const PROGRAM: &str = r#"#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void nothing(void) {}
static void *wait_for(void *barrier) {
    pthread_barrier_wait(barrier);
    return NULL;
}
int main(int count, char **arguments) {
    for (int handlers = count > 1 ? atoi(arguments[1]) : 0; handlers > 0; handlers--) atexit(nothing);
    pthread_barrier_t barrier;
    pthread_t thread;
    pthread_barrier_init(&barrier, NULL, 2);
    if (pthread_create(&thread, NULL, wait_for, &barrier)) return 1;
    dprintf(1, "%zu\n", mallinfo2().uordblks);
    pthread_barrier_wait(&barrier);
    return pthread_join(thread, NULL);
}
"#;

/// Handlers that glibc holds in one piece of memory, the first of which is its own.
const HANDLERS: u64 = 32;
/// A piece, with the allocator's word in front.
const PIECE_BYTES: u64 = 1040 + 16;
/// A thread's word for one library more with variables of its own.
const WORD_BYTES: u64 = 16;

#[test]
fn a_thread_takes_16_bytes_more_and_one_number_of_exit_handlers_of_32_a_block_more() {
    let workshop = Workshop::new("libc-blocks");
    let program = build_text(workshop.path(), "blocks", PROGRAM);
    let used = |job: &[&str], handlers: u64| -> u64 {
        let mut command = match job {
            [] => run::command(&program),
            _ => {
                let mut command = run::command(run::mallow_binary());
                command.args(job).arg(&program);
                command
            }
        };
        let finished = run::finish(command.arg(handlers.to_string()).current_dir(workshop.path())).well();
        finished
            .stdout
            .lines()
            .next()
            .and_then(|line| line.parse().ok())
            .unwrap_or_else(|| panic!("{finished}"))
    };
    for job in [
        &["-q", "record", "-o", "a.mallow", "--force", "--"][..],
        &["-q", "stat", "-o", "stat", "--force", "--"],
    ] {
        let mut more = vec![];
        for handlers in 0..HANDLERS {
            more.push(used(job, handlers) - used(&[], handlers));
        }
        more.sort_unstable();
        let mut expected = vec![WORD_BYTES; HANDLERS as usize - 1];
        expected.push(WORD_BYTES + PIECE_BYTES);
        assert_eq!(more, expected, "{job:?}");
    }
}
