/* Hazard: SIGSEGV in the middle of a burst.
 * The process dies between two calls of a loop that never pauses: the last events are microseconds old.
 *
 * burst walks i = 1, 2, …: burst_block makes i % 32 + 1 bytes; every third block is freed two rounds later. At i = 777
 * the program writes through a null pointer, after burst_block's call and before the free of that round.
 *   allocations 777; bytes: 777 = 24 * 32 + 9: 24 * (1+…+32) = 24 * 528 = 12,672, then i % 32 = 1 … 9 gives 2+…+10 =
 *     54: 12,726
 *   frees: block i is freed in round i + 2 if i % 3 == 0; rounds 5, 8, … up to 776: i = 3, 6, … 774: 258 frees, 0
 *     temporary
 *   leaked 777 - 258 = 519 blocks; 12,726 less the bytes of i = 3 … 774: 258 multiples of 3; their residues mod 32 run
 *   through all 32 values every 32 steps: 8 * 528 = 4,224, and i = 771, 774 give residues 3, 6: 4 + 7 = 11; 12,726 -
 *     4,235 = 8,491
 *   peak: live bytes fall only by frees; highest is after the last allocation: 8,491 in 519 blocks */
#include "hazard.h"

static void *blocks[1000];

static FRAME void *burst_block(int i) { void *p = malloc((size_t)(i % 32 + 1)); KEEP(p); return p; }
static FRAME void write_to(volatile int *address) { *address = 1; }

static FRAME void burst(void) {
    for (int i = 1;; i++) {
        blocks[i] = burst_block(i);
        if (i == 777) write_to(NULL);
        if (i > 2 && (i - 2) % 3 == 0) free(blocks[i - 2]);
    }
}

int main(void) {
    burst();
    return 0;
}
