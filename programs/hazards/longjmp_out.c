/* Hazard: longjmp over frames, and other functions at the same depth afterwards.
 * An unwinder that remembers the last stack must not believe that the frames left by longjmp are still there: the next
 * functions reuse the same stack slots, and may even leave the same values in them.
 *
 * round_trip runs 100 rounds; each goes twice to the same depth over different functions.
 *   out_leaf  (under out_middle, out_top)   malloc(48), remembered, then longjmp to round_trip: 100 allocations, 4,800
 *             bytes
 *   back_leaf (under back_middle, back_top) malloc(80), then a normal return: 100 allocations, 8,000 bytes
 * round_trip frees both after the round, the 48 first (not temporary), then the 80 (temporary, it came last).
 * allocations 200; bytes 12,800; frees 200; temporary 100; peak 128 in 2 blocks; leaked 0. */
#include "hazard.h"
#include <setjmp.h>

static jmp_buf home;
static void *carried;

static FRAME void out_leaf(void) {
    carried = malloc(48);
    longjmp(home, 1);
}
static FRAME void out_middle(void) { out_leaf(); STAY(); }
static FRAME void out_top(void) { out_middle(); STAY(); }

static FRAME void *back_leaf(void) { void *p = malloc(80); KEEP(p); return p; }
static FRAME void *back_middle(void) { void *p = back_leaf(); KEEP(p); return p; }
static FRAME void *back_top(void) { void *p = back_middle(); KEEP(p); return p; }

static FRAME void round_trip(void) {
    for (volatile int i = 0; i < 100; i++) {
        if (setjmp(home) == 0) out_top();
        void *p = back_top();
        free(carried);
        free(p);
    }
}

int main(void) {
    round_trip();
    return 0;
}
