/* Leaks: a test of the gate itself. Every second block is never freed.
 *
 * 1000 operations x (1 block that is freed + 1 block that is not) = 2000, of which 1000 remain.
 *
 * expect: allocations=2000 remaining=1000 descriptors=0 ops=1000
 */
#include "gate.h"

enum { OPS = 1000 };

static void run(void *context) {
    int operation;
    (void)context;
    GATE_SEED_FD(); /* SEED_FD */
    for (operation = 0; operation < OPS; operation++) {
        free(gate_block(32));
        (void)gate_block(48);
        GATE_SEED_ALLOC();         /* SEED_ALLOC */
        GATE_SEED_LEAK(operation); /* SEED_LEAK */
    }
}

int main(void) {
    gate_start(OPS);
    mallow_measure("leak_one_per_op", run, NULL);
    return 0;
}
