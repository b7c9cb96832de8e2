/* Measures what readers of large profiles take: half a million sites, none of which is like another.
 *
 * pattern 0 … N-1: 6 levels, each a call of one of ten functions by the pattern's decimal digits, lowest first; at the end leaf makes three
 * blocks of 16 bytes and keeps them. N is 500,000, or the first argument.
 * With -DRENAMED one of the ten functions has another name, which is in half of all stacks. */
#include "hazard.h"

#ifdef RENAMED
#define step_7 march_7
#endif

static void step(unsigned pattern, int levels);

static FRAME void leaf(void) {
    for (int i = 0; i < 3; i++) {
        void *p = malloc(16);
        KEEP(p);
    }
}
#define STEP(name)                                                                                                     \
    static FRAME void name(unsigned pattern, int levels) { step(pattern, levels); STAY(); }
STEP(step_0) STEP(step_1) STEP(step_2) STEP(step_3) STEP(step_4) STEP(step_5) STEP(step_6) STEP(step_7) STEP(step_8) STEP(step_9)

static inline __attribute__((always_inline)) void step(unsigned pattern, int levels) {
    static void (*const steps[10])(unsigned, int) = {step_0, step_1, step_2, step_3, step_4,
                                                     step_5, step_6, step_7, step_8, step_9};
    if (levels == 0) leaf();
    else steps[pattern % 10](pattern / 10, levels - 1);
}

int main(int argc, char **argv) {
    unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 500000;
    for (unsigned pattern = 0; pattern < count; pattern++) step(pattern, 6);
    return 0;
}
