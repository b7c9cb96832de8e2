/* Hazard: frames too large for a rule of one word.
 * A function with a megabyte of locals moves its stack pointer by more than most tables of compact rules can say: whoever cuts
 * the number loses every caller.
 *
 * 100 rounds, each block freed at once:
 *   large   a frame of 1 MiB without a frame pointer, 1 block of 24 bytes from `inner` below it
 *   larger  a frame of 300,000 bytes that also saves rbp, 1 block of 40 bytes from `inner_too`
 * 200 allocations, 6,400 bytes, 200 frees. */
#include "hazard.h"

#define ROUNDS 100

static FRAME void inner(char *room) {
    char *block = malloc(24);
    KEEP(block);
    room[0] = 1;
    free(block);
    STAY();
}

static FRAME void inner_too(char *room) {
    char *block = malloc(40);
    KEEP(block);
    room[0] = 1;
    free(block);
    STAY();
}

static FRAME void large(void) {
    char room[1 << 20];
    KEEP(room);
    inner(room);
    STAY();
}

static FRAME void larger(void) {
    char room[300000];
    KEEP(room);
    /* The compiler must save rbp, and use it for data. */
    __asm__ volatile("xorl %%ebp, %%ebp" : : : "rbp");
    inner_too(room);
    STAY();
}

int main(void) {
    for (int i = 0; i < ROUNDS; i++) {
        large();
        larger();
    }
    return 0;
}
