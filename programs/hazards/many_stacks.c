/* Hazard: a hundred thousand distinct stacks.
 * Tables that grow, hash badly or stop at a limit show here; so does a recorder that sends a whole stack per event.
 *
 * pattern 0 … 99,999: 5 levels, each a call of one of ten functions by the pattern's decimal digits, lowest first; at the
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
#define STEP(digit)                                                                                                    \
    static FRAME void step_##digit(unsigned pattern, int levels, int keep) { step(pattern, levels, keep); STAY(); }
STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7) STEP(8) STEP(9)

static inline __attribute__((always_inline)) void step(unsigned pattern, int levels, int keep) {
    static void (*const steps[10])(unsigned, int, int) = {step_0, step_1, step_2, step_3, step_4,
                                                          step_5, step_6, step_7, step_8, step_9};
    if (levels == 0) leaf(keep);
    else steps[pattern % 10](pattern / 10, levels - 1, keep);
}

int main(void) {
    for (unsigned pattern = 0; pattern < 100000; pattern++) step(pattern, 5, pattern % 1000 == 0);
    return 0;
}
