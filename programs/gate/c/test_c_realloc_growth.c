/* Grows a buffer by realloc, which counts each time, whether the block moves or not.
 *
 * 1000 operations x (1 of 16 bytes + 10 doublings up to 16384) = 11000.
 *
 * expect: allocations=11000 remaining=0 descriptors=0 ops=1000
 */
#include "gate.h"

enum { OPS = 1000, FIRST = 16, LAST = 16384 };

static void run(void *context) {
    int operation;
    (void)context;
    GATE_SEED_FD(); /* SEED_FD */
    for (operation = 0; operation < OPS; operation++) {
        char *bytes = gate_block(FIRST);
        size_t size;
        for (size = 2 * FIRST; size <= LAST; size *= 2) {
            bytes = realloc(bytes, size);
            GATE_EXPECT(bytes != NULL);
            mallow_keep(bytes);
        }
        free(bytes);
        GATE_SEED_ALLOC();         /* SEED_ALLOC */
        GATE_SEED_LEAK(operation); /* SEED_LEAK */
    }
}

int main(void) {
    gate_start(OPS);
    mallow_measure("realloc_growth", run, NULL);
    return 0;
}
