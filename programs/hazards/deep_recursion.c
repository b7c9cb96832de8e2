/* Hazard: stacks of 10,000 frames.
 * Fixed tables (64, 128, 1,024 frames) cut off the root, so that one function appears under many wrong roots; a
 * recursive unwinder needs more stack than the program has left.
 *
 * Three times: descend calls itself down to level 10,000; at every 1,000th level, on the way down, it calls at_level:
 * malloc(64).
 *   at_level  30 allocations, 1,920 bytes, under exactly 1,000, 2,000 … 10,000 frames of descend: 10 stacks, 3
 *             allocations each
 * On the way up each level frees its block: level 10,000's was the last allocated: temporary 3 (one per descent).
 * frees 30; peak 640 in 10 blocks; leaked 0. */
#include "hazard.h"

static FRAME void *at_level(void) { void *p = malloc(64); KEEP(p); return p; }
static FRAME void descend(int level) {
    void *block = level % 1000 == 0 ? at_level() : NULL;
    if (level < 10000) descend(level + 1);
    free(block);
    STAY();
}

int main(void) {
    for (volatile int i = 0; i < 3; i = i + 1) descend(1); /* volatile: one call site, not three unrolled ones */
    return 0;
}
