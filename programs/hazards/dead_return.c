/* Hazard: a dead return address where a live one was, and below it the same stack.
 * `pad` and what it calls share a constant number of bytes, so those further in return from the same places each time, while the return
 * address into `pad` moves into what is now an array of `pad`, unchanged. Only rbp tells: the one that `middle` saved, or rbp itself.
 *
 *   leaf under middle under saved under pad, from its first call 8 and from its second 7 allocations of 48 bytes
 *   lone_leaf under kept under pad, from its first call 8 and from its second 7 allocations of 16 bytes
 * Each block is freed by the function that asked for it, right away: temporary 30.
 * allocations 30; bytes 15 * 48 + 15 * 16 = 960; frees 30; peak: one block at a time, 48 in 1; leaked 0. 4 stacks in all. */
#include "hazard.h"
#include <alloca.h>

#define SHARES 16
#define SHARE_BYTES 64

static FRAME void *leaf(void) { void *p = malloc(48); KEEP(p); return p; }
static FRAME void *lone_leaf(void) { void *p = malloc(16); KEEP(p); return p; }

/* Uses rbp for something else, so it saves it. */
static FRAME void middle(void) {
    __asm__ volatile("xor %%ebp, %%ebp" : : : "rbp");
    free(leaf());
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
    free(lone_leaf());
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
