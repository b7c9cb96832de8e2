/* Hazard: a dead return address where a live one was, and below it the same stack.
 * `pad` and `grown` share a constant number of bytes, so `middle` and `leaf` return from the same places each time, while `grown`'s own
 * return address moves into what is now an array of `pad`, unchanged. Only the rbp that `middle` saved tells.
 *
 *   leaf under middle under grown under pad (first call), shares 1, 3, … 15: 8 allocations of 48 bytes
 *   leaf under middle under grown under pad (second call), shares 2, 4, … 14: 7 allocations of 48 bytes
 * Each block is freed by the function that asked for it, right away: temporary 15.
 * allocations 15; bytes 15 * 48 = 720; frees 15; peak: one block at a time, 48 in 1; leaked 0. 2 stacks in all. */
#include "hazard.h"
#include <alloca.h>

#define SHARES 16
#define SHARE_BYTES 64

static FRAME void *leaf(void) { void *p = malloc(48); KEEP(p); return p; }

/* Uses rbp for something else, so it saves it. */
static FRAME void middle(void) {
    __asm__ volatile("xor %%ebp, %%ebp" : : : "rbp");
    free(leaf());
    __asm__ volatile("xor %%ebp, %%ebp" : : : "rbp");
}
static FRAME void grown(int share) {
    char *space = alloca(SHARE_BYTES * (SHARES - share));
    KEEP(space);
    middle();
    KEEP(space);
}
static FRAME void pad(int share) {
    char *space = alloca(SHARE_BYTES * share);
    KEEP(space);
    if (share & 1) {
        grown(share);
        __asm__ volatile("nop" : : "r"(space) : "memory");
    } else {
        grown(share);
        __asm__ volatile("nop; nop" : : "r"(space) : "memory");
    }
}

int main(void) {
    for (int share = 1; share < SHARES; share++) pad(share);
    return 0;
}
