/* Hazard: every function of the malloc family.
 * Profilers hook malloc, calloc, realloc and free and forget the rest: memalign and pvalloc blocks are then unseen and
 * their frees look foreign; reallocarray is counted twice when its inner realloc is hooked as well.
 *
 * Each call sits in its own function, in this order:
 *   call_pair          malloc(24), free            1 allocation, 24 bytes, 1 free, temporary
 *   call_malloc        malloc(100) = a             100
 *   call_calloc        calloc(7, 30) = b           210
 *   call_realloc       realloc(a, 150) = c         150, frees a; b came after a, so a is not temporary
 *   call_reallocarray  reallocarray(b, 10, 40) = d 400, frees b; c came after b, so b is not temporary
 *   call_realloc_null  realloc(NULL, 50) = e       50, no reallocation: there was no block before
 *   call_posix_memalign 300 = f, call_memalign 310 = g, call_aligned_alloc 512 = h, call_valloc 320 = i,
 *   call_pvalloc       330 = k: 330 bytes were asked for, whatever the page is
 *   malloc_usable_size counts nothing
 *   free_some          frees c d e f g
 * allocations 1+10 = 11; bytes 24+100+210+150+400+50+300+310+512+320+330 = 2706; frees 1+2+5 = 8; reallocations 2.
 * peak, when k arrives: 150+400+50+300+310+512+320+330 = 2372 in 8 blocks. leaked: h, i, k = 1162 in 3 blocks. */
#define _GNU_SOURCE
#include "hazard.h"
#include <malloc.h>

static FRAME void call_pair(void) {
    void *p = malloc(24);
    KEEP(p);
    free(p);
    STAY();
}
static FRAME void *call_malloc(void) { void *p = malloc(100); KEEP(p); return p; }
static FRAME void *call_calloc(void) { void *p = calloc(7, 30); KEEP(p); return p; }
static FRAME void *call_realloc(void *p) { p = realloc(p, 150); KEEP(p); return p; }
static FRAME void *call_reallocarray(void *p) { p = reallocarray(p, 10, 40); KEEP(p); return p; }
static FRAME void *call_realloc_null(void) { void *p = realloc(NULL, 50); KEEP(p); return p; }
static FRAME void *call_posix_memalign(void) {
    void *p = NULL;
    EXPECT(posix_memalign(&p, 64, 300) == 0, 10);
    KEEP(p);
    return p;
}
static FRAME void *call_memalign(void) { void *p = memalign(128, 310); KEEP(p); return p; }
static FRAME void *call_aligned_alloc(void) { void *p = aligned_alloc(256, 512); KEEP(p); return p; }
static FRAME void *call_valloc(void) { void *p = valloc(320); KEEP(p); return p; }
static FRAME void *call_pvalloc(void) { void *p = pvalloc(330); KEEP(p); return p; }
static FRAME void free_some(void *c, void *d, void *e, void *f, void *g) {
    free(c), free(d), free(e), free(f), free(g);
    STAY();
}

int main(void) {
    call_pair();
    void *a = call_malloc(), *b = call_calloc();
    void *c = call_realloc(a), *d = call_reallocarray(b), *e = call_realloc_null();
    void *f = call_posix_memalign(), *g = call_memalign(), *h = call_aligned_alloc();
    void *i = call_valloc(), *k = call_pvalloc();
    EXPECT(c && d && e && f && g && h && i && k, 11);
    EXPECT(malloc_usable_size(c) >= 150 && malloc_usable_size(k) >= 330, 12);
    free_some(c, d, e, f, g);
    return 0;
}
