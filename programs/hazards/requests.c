/* Hazard: how a block is requested, where one call calls several functions.
 * Who tells calloc from malloc by the place of the call mixes them up where a pointer is called; who tells them apart in a
 * table of live blocks forgets those that are freed at once.
 *
 *   keep_zeroed     3 times calloc(1, 1000)                                 zeroed 3, 3000 bytes, kept
 *   keep_aligned    memalign(64, 70), twice                                 aligned 2, 140 bytes, kept
 *   mix             20 times each, by one call: malloc(16), calloc(16, 32), aligned_alloc(16, 32), freed at once
 *                                                                           320 bytes; zeroed 20, 10,240; aligned 20, 640
 *   pass_zeroed     100 times calloc(4, 25), freed at once                  zeroed 100, 10,000
 *   pass_aligned    10 times posix_memalign of 100 bytes, freed at once     aligned 10, 1000
 *   resize          calloc(1, 10), which realloc makes 100 bytes; freed     zeroed 1, 10; the 100 bytes are a reallocation's
 *   fail            calloc and posix_memalign of more than there is         2 failed, which are of no kind
 *
 * zeroed 3 + 20 + 100 + 1 = 124, 3000 + 10,240 + 10,000 + 10 = 23,250 bytes; aligned 2 + 20 + 10 = 32, 140 + 640 + 1000 = 1780 bytes.
 * allocations 3 + 2 + 60 + 100 + 10 + 2 = 177; bytes 3000 + 140 + 11,200 + 10,000 + 1000 + 110 = 25,450; all but the five that are kept are freed
 * at once, by realloc too: frees and temporary 172. Peak: a block of 512 bytes beside those that are kept. */
#include "hazard.h"
#include <malloc.h>
#include <stdint.h>

typedef void *(*Allocating)(size_t, size_t);

static FRAME void keep_zeroed(void) {
    for (int i = 0; i < 3; i++) {
        void *p = calloc(1, 1000);
        KEEP(p);
    }
}
static FRAME void keep_aligned(void) {
    for (int i = 0; i < 2; i++) {
        void *p = memalign(64, 70);
        KEEP(p);
    }
}
/* malloc does not look at a second argument. */
static FRAME void mix(void) {
    void *functions[3] = {(void *)malloc, (void *)calloc, (void *)aligned_alloc};
    for (int i = 0; i < 60; i++) {
        void *p = ((Allocating)functions[i % 3])(16, 32);
        KEEP(p);
        free(p);
    }
    STAY();
}
static FRAME void pass_zeroed(void) {
    for (int i = 0; i < 100; i++) {
        void *p = calloc(4, 25);
        KEEP(p);
        free(p);
    }
    STAY();
}
static FRAME void pass_aligned(void) {
    for (int i = 0; i < 10; i++) {
        void *p = NULL;
        EXPECT(posix_memalign(&p, 64, 100) == 0, 10);
        KEEP(p);
        free(p);
    }
    STAY();
}
static FRAME void resize(void) {
    void *p = calloc(1, 10);
    KEEP(p);
    p = realloc(p, 100);
    KEEP(p);
    free(p);
    STAY();
}
static FRAME void fail(void) {
    volatile size_t most = SIZE_MAX / 4;
    void *p = calloc(most, 8), *q = NULL;
    EXPECT(p == NULL && posix_memalign(&q, 64, most) != 0, 11);
    STAY();
}

int main(void) {
    keep_zeroed();
    keep_aligned();
    mix();
    pass_zeroed();
    pass_aligned();
    resize();
    fail();
    return 0;
}
