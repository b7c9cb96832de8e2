/* Hazard: short stacks that are reached by the same path so often that they are known as a whole, and then are no longer what they were
 * although their words are.
 *
 * As in dead_return, `pad` and what it calls share a constant number of bytes, so those further in return from the same places each
 * time, while the return address into `pad` moves into what is now an array of `pad`, unchanged. Only rbp tells: the one that `middle`
 * saved, or rbp itself.
 *
 *   leaf, other_leaf and third_leaf under loop under middle under saved under pad, from its two calls 160 and 140 allocations each,
 *   of 48, 32 and 24 bytes
 *   the same under loop under kept under pad
 * Each block is freed by the function that called for it, right away: temporary 1800.
 * allocations 1800; bytes 600 * (48 + 32 + 24) = 62400; frees 1800; peak: one block at a time, 48 in 1; leaked 0. 12 stacks in all. */
#include "hazard.h"
#include <alloca.h>

#define SHARES 16
#define SHARE_BYTES 64
#define ROUNDS 20

static FRAME void *leaf(void) { void *p = malloc(48); KEEP(p); return p; }
static FRAME void *other_leaf(void) { void *p = malloc(32); KEEP(p); return p; }
static FRAME void *third_leaf(void) { void *p = malloc(24); KEEP(p); return p; }

/* They take turns: one may be known as a whole from its walk, and of the others each is not on the last stack that was walked. */
static FRAME void loop(void) {
    for (int round = 0; round < ROUNDS; round++) {
        free(leaf());
        free(other_leaf());
        free(third_leaf());
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

int main(void) {
    for (int share = 1; share < SHARES; share++) pad(share, saved);
    for (int share = 1; share < SHARES; share++) pad(share, kept);
    return 0;
}
