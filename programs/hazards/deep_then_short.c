/* Hazard: the inner part of a stack that is deeper than stacks are followed, and later the same words at the same places on a short one.
 * Of more than 32,768 frames the inner 4,096 are kept. When the recursion has returned to the outermost few of these, what is called
 * there has a short stack by its words, whose outer part is not known.
 *
 *   leaf and other_leaf under loop under 13 calls of deep under short_stack: 20 allocations of 48 and of 32 bytes each
 *   the same under loop under 28,916 calls of deep, which are cut; bottom under deep: 3 of 16 bytes
 * Each block is freed by the function that called for it, right away: temporary 83.
 * allocations 83; bytes 40 * 48 + 40 * 32 + 3 * 16 = 3248; frees 83; peak: one block at a time, 48 in 1; leaked 0. */
#include "hazard.h"
#include <alloca.h>
#include <stdint.h>

#define ROUNDS 20
/* At level AT the outermost few of the frames that are kept are left. */
#define DEEP 33000
#define AT 4085
#define ABOVE 12

static FRAME void *leaf(void) { void *p = malloc(48); KEEP(p); return p; }
static FRAME void *other_leaf(void) { void *p = malloc(32); KEEP(p); return p; }
static FRAME void *bottom(void) { void *p = malloc(16); KEEP(p); return p; }

/* The two take turns, so neither is on the last call's stack. */
static FRAME void loop(void) {
    for (int round = 0; round < ROUNDS; round++) {
        free(leaf());
        free(other_leaf());
    }
    STAY();
}

/* Where the frame at AT was. */
static uintptr_t place;

static FRAME void deep(long level, int is_probe) {
    volatile char here = 0;
    if (level > 0) {
        deep(level - 1, is_probe);
    } else {
        free(bottom());
    }
    if (level == AT) {
        place = (uintptr_t)&here;
        if (!is_probe) loop();
    }
    STAY();
}
static FRAME void short_stack(size_t bytes, int is_probe) {
    char *space = alloca(bytes);
    KEEP(space);
    deep(AT + ABOVE, is_probe);
    KEEP(space);
}

int main(void) {
    deep(DEEP, 0);
    uintptr_t wanted = place;
    short_stack(64, 1);
    short_stack(64 + (place - wanted), 0);
    EXPECT(place == wanted, 91);
    return 0;
}
