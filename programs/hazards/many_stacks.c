/* Hazard: a hundred thousand distinct stacks.
 * Tables that grow, hash badly or stop at a limit show here; so does a recorder that sends a whole stack per event.
 *
 * pattern 0 … 99,999: 17 levels, each a call of step_left or step_right by the pattern's bits, lowest first; at the
 * end leaf makes 16 bytes and frees them, except for every 1,000th pattern, which keeps them.
 *   leaf  100,000 allocations over exactly 100,000 distinct stacks; 1,600,000 bytes; 99,900 temporary; leaked 100
 *         blocks = 1,600 bytes
 * frees 99,900. peak: 100 blocks kept (the last at pattern 99,000) and one passing: 1,616 in 101 blocks. */
#include "hazard.h"

static void step(unsigned pattern, int levels, int keep);

static FRAME void leaf(int keep) {
    void *p = malloc(16);
    KEEP(p);
    if (!keep) free(p);
}
static FRAME void step_left(unsigned pattern, int levels, int keep) { step(pattern, levels, keep); STAY(); }
static FRAME void step_right(unsigned pattern, int levels, int keep) { step(pattern, levels, keep); STAY(); }

static inline __attribute__((always_inline)) void step(unsigned pattern, int levels, int keep) {
    if (levels == 0) leaf(keep);
    else if (pattern & 1) step_right(pattern >> 1, levels - 1, keep);
    else step_left(pattern >> 1, levels - 1, keep);
}

int main(void) {
    for (unsigned pattern = 0; pattern < 100000; pattern++) step(pattern, 17, pattern % 1000 == 0);
    return 0;
}
