/* Another thread allocates, this one frees: a block belongs to the run in which it was born, whichever thread it was.
 *
 * 1000 operations x 1 block = 1000.
 *
 * expect: allocations=1000 remaining=0 descriptors=0 ops=1000
 */
#include "queue.h"

enum { OPS = 1000 };

static struct queue orders, blocks;

static void *allocate(void *context) {
    (void)context;
    for (;;) {
        int operation;
        queue_pop(&orders);
        for (operation = 0; operation < OPS; operation++) {
            queue_push(&blocks, gate_block(64));
            GATE_SEED_ALLOC();         /* SEED_ALLOC */
            GATE_SEED_LEAK(operation); /* SEED_LEAK */
        }
        /* The run may end as soon as it has this, so it comes after everything else. */
        queue_push(&blocks, &blocks);
    }
    return NULL;
}

static void run(void *context) {
    void *block;
    int received = 0;
    (void)context;
    GATE_SEED_FD(); /* SEED_FD */
    queue_push(&orders, &orders);
    while ((block = queue_pop(&blocks)) != &blocks) {
        free(block);
        received++;
    }
    GATE_EXPECT(received == OPS);
}

int main(void) {
    queue_init(&orders);
    queue_init(&blocks);
    thread_start(allocate, NULL);
    gate_start(OPS);
    mallow_measure("alloc_on_other_thread", run, NULL);
    return 0;
}
