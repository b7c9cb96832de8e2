/* Hazard: short stacks that are reached by the same path so often that they are known as a whole, and then are no longer what they were
 * although the words on the path are.
 *
 * First as in dead_return: `pad` and what it calls share a constant number of bytes, so those further in return from the same places each
 * time, while the return address into `pad` moves into what is now an array of `pad`, unchanged. Only rbp tells: the one that `middle`
 * saved, or rbp itself. Then at the end of a stack that is deeper than stacks are followed: its inner part, and later the same
 * words at the same places on a short stack.
 *
 *   leaf and other_leaf under loop under middle under saved under pad, from its two calls 160 and 140 allocations of 48 and 32 bytes each
 *   the same under loop under kept under pad
 *   the same under loop under deep, at each of two depths 20 of each; bottom under deep: 3 of 16 bytes
 * Each block is freed by the function that asked for it, right away: temporary 1283.
 * allocations 1283; bytes 640 * 48 + 640 * 32 + 3 * 16 = 51248; frees 1283; peak: one block at a time, 48 in 1; leaked 0. */
#include "hazard.h"
#include <alloca.h>
#include <stdint.h>

#define SHARES 16
#define SHARE_BYTES 64
#define ROUNDS 20
/* Of a stack of more than 32,768 frames the inner 4,096 are kept: at AT the outermost few of them are left. */
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

/* Uses rbp for something else, so it saves it. */
static FRAME void middle(void) {
    __asm__ volatile("xor %%ebp, %%ebp" : : : "rbp");
    loop();
    __asm__ volatile("xor %%ebp, %%ebp" : : : "rbp");
}
static FRAME void saved(int share) {
    char *space = alloca(SHARE_BYTES * (SHARES - share));
    KEEP(space);
    middle();
    KEEP(space);
}
static FRAME void kept(int share) {
    char *space = alloca(SHARE_BYTES * (SHARES - share));
    KEEP(space);
    loop();
    KEEP(space);
}
static FRAME void pad(int share, void (*inner)(int)) {
    char *space = alloca(SHARE_BYTES * share);
    KEEP(space);
    if (share & 1) {
        inner(share);
        __asm__ volatile("nop" : : "r"(space) : "memory");
    } else {
        inner(share);
        __asm__ volatile("nop; nop" : : "r"(space) : "memory");
    }
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
    for (int share = 1; share < SHARES; share++) pad(share, saved);
    for (int share = 1; share < SHARES; share++) pad(share, kept);
    deep(DEEP, 0);
    uintptr_t wanted = place;
    short_stack(64, 1);
    short_stack(64 + (place - wanted), 0);
    EXPECT(place == wanted, 91);
    return 0;
}
