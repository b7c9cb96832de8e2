/* Another thread frees what the run allocated, 300 milliseconds after the run is over: a test of the gate itself, which
 * must wait for it and call nothing a leak.
 *
 * 100 operations x 1 block = 100.
 *
 * expect: allocations=100 remaining=0 descriptors=0 ops=100
 */
#include "queue.h"
#include <time.h>

enum { OPS = 100 };

static struct queue late;

static void *free_late(void *context) {
    (void)context;
    for (;;) {
        void **blocks = queue_pop(&late);
        struct timespec pause = {0, 300000000};
        int i;
        nanosleep(&pause, NULL);
        for (i = 0; i < OPS; i++) free(blocks[i]);
    }
    return NULL;
}

static void run(void *context) {
    /* One array per run, in turns: the next run begins when these are freed, or when mallow has given up waiting. */
    static void *arrays[16][OPS];
    static unsigned runs;
    void **blocks = arrays[runs++ % 16];
    int operation;
    (void)context;
    GATE_SEED_FD(); /* SEED_FD */
    for (operation = 0; operation < OPS; operation++) {
        blocks[operation] = gate_block(32);
        GATE_SEED_ALLOC();         /* SEED_ALLOC */
        GATE_SEED_LEAK(operation); /* SEED_LEAK */
    }
    queue_push(&late, blocks);
}

int main(void) {
    queue_init(&late);
    thread_start(free_late, NULL);
    gate_start(OPS);
    mallow_measure("late_free", run, NULL);
    return 0;
}
