/* Hazard: calls that fail, and calls of size zero.
 * A failed call must not become an allocation, must leave errno as libc set it, and an aligned call that fails must
 * leave the caller's pointer alone. A block of size 0 is a block: it has an address and must be freed.
 *
 *   hold            malloc(40) first, kept to the end, so that the peak has something to stand on
 *   fail_plain      malloc, calloc, realloc(NULL), realloc(p), memalign, valloc, pvalloc, aligned_alloc of PTRDIFF_MAX
 *                   bytes: 8 failed
 *   fail_overflow   calloc and reallocarray whose product overflows: 2 failed
 *   fail_posix      posix_memalign with alignment 3 (EINVAL) and with PTRDIFF_MAX bytes (ENOMEM): 2 failed
 *   zero_blocks     malloc(0), calloc(0,5), calloc(5,0), realloc(NULL,0), posix_memalign(64,0), aligned_alloc(64,0): 6
 *                   allocations
 *   free(NULL)      twice: nothing
 *   zero_release    frees 4 of the 6, from the first on: none was the last allocated, so none is temporary
 * allocations 1+6 = 7; bytes 40; failed 12; frees 4; peak 40 bytes: of equal peaks the last, so with all 7 blocks
 * live.
 * leaked 40 bytes in 1+2 = 3 blocks. */
#define _GNU_SOURCE
#include "hazard.h"
#include <errno.h>
#include <malloc.h>
#include <stdint.h>

static volatile size_t huge = PTRDIFF_MAX, nothing = 0, odd = 3;

static FRAME void *hold(void) { void *p = malloc(40); KEEP(p); return p; }
static FRAME void fails(void *p, int status) {
    EXPECT(p == NULL && errno == ENOMEM, status);
    errno = 0;
}
static FRAME void fail_plain(void *held) {
    fails(malloc(huge), 10);
    fails(calloc(1, huge), 11);
    fails(realloc(NULL, huge), 12);
    fails(realloc(held, huge), 13);
    fails(memalign(64, huge), 14);
    fails(valloc(huge), 15);
    fails(pvalloc(huge), 16);
    fails(aligned_alloc(64, huge), 17);
}
static FRAME void fail_overflow(void) {
    fails(calloc(huge, 4), 20);
    fails(reallocarray(NULL, huge, 4), 21);
}
static FRAME void fail_posix(void) {
    static char anchor;
    void *untouched = &anchor;
    EXPECT(posix_memalign(&untouched, odd, 100) == EINVAL && untouched == (void *)&anchor, 30);
    EXPECT(posix_memalign(&untouched, 64, huge) == ENOMEM && untouched == (void *)&anchor, 31);
}
static FRAME void zero_blocks(void *blocks[6]) {
    blocks[0] = malloc(nothing);
    blocks[1] = calloc(nothing, 5);
    blocks[2] = calloc(5, nothing);
    blocks[3] = realloc(NULL, nothing);
    EXPECT(posix_memalign(&blocks[4], 64, nothing) == 0, 40);
    blocks[5] = aligned_alloc(64, nothing);
    for (int i = 0; i < 6; i++) EXPECT(blocks[i] != NULL, 41);
}
static FRAME void zero_release(void *blocks[6]) {
    for (int i = 0; i < 4; i++) free(blocks[i]);
    free(NULL), free(NULL);
    STAY();
}

int main(void) {
    void *blocks[6], *held = hold();
    errno = 0;
    fail_plain(held);
    fail_overflow();
    fail_posix();
    zero_blocks(blocks);
    zero_release(blocks);
    return 0;
}
