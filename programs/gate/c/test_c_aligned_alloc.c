/* The functions that allocate at an alignment; counters that know only malloc see their frees and not them.
 *
 * 1000 operations x (aligned_alloc + posix_memalign + memalign + valloc) = 4000.
 *
 * expect: allocations=4000 remaining=0 descriptors=0 ops=1000
 */
#include "gate.h"
#include <malloc.h>

enum { OPS = 1000 };

static void check(const void *block, uintptr_t alignment) {
    mallow_keep(block);
    GATE_EXPECT(block != NULL && (uintptr_t)block % alignment == 0);
}

static void run(void *context) {
    int operation;
    (void)context;
    GATE_SEED_FD(); /* SEED_FD */
    for (operation = 0; operation < OPS; operation++) {
        void *line = aligned_alloc(64, 128), *page = NULL, *vector, *whole;
        check(line, 64);
        GATE_EXPECT(posix_memalign(&page, 4096, 100) == 0);
        check(page, 4096);
        vector = memalign(32, 100);
        check(vector, 32);
        whole = valloc(100);
        check(whole, (uintptr_t)sysconf(_SC_PAGESIZE));
        free(line);
        free(page);
        free(vector);
        free(whole);
        GATE_SEED_ALLOC();         /* SEED_ALLOC */
        GATE_SEED_LEAK(operation); /* SEED_LEAK */
    }
}

int main(void) {
    gate_start(OPS);
    mallow_measure("aligned_alloc", run, NULL);
    return 0;
}
