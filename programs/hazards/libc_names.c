/* Hazard: glibc's second names of the malloc family, mixed with the first ones. A profiler that hooks only the first sees frees of
 * blocks that it never met, and takes for one block what are two at the same address.
 *
 *   second_malloc   __libc_malloc(100) = a, five times freed by free         5 allocations, 500 bytes, 5 frees, 5 temporary
 *   second_free     malloc(60), five times freed by __libc_free              5 allocations, 300 bytes, 5 frees, 5 temporary
 *   second_calloc   __libc_calloc(7, 30) = b                                 210
 *   second_realloc  __libc_realloc(b, 400) = c                               400, frees b at once: a reallocation
 *   second_aligned  __libc_memalign(64, 310) = d, __libc_valloc(320) = e, __libc_pvalloc(330) = f
 *   wrapped         through the program's own wrapper, which counts as its caller: __libc_malloc(700) = g
 * allocations 5+5+1+1+3+1 = 16; bytes 500+300+210+400+310+320+330+700 = 3070; frees 5+5+1 = 11; reallocations 1.
 * temporary: 10, and b, after which nothing was allocated: 11. peak, at the end: c d e f g = 400+310+320+330+700 = 2060 in 5 blocks,
 * all leaked. */
#include "hazard.h"

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t), *__libc_valloc(size_t), *__libc_pvalloc(size_t);
extern void __libc_free(void *);

static FRAME void second_malloc(void) {
    for (int i = 0; i < 5; i++) { void *p = __libc_malloc(100); KEEP(p); free(p); }
    STAY();
}
static FRAME void second_free(void) {
    for (int i = 0; i < 5; i++) { void *p = malloc(60); KEEP(p); __libc_free(p); }
    STAY();
}
static FRAME void *second_calloc(void) { void *p = __libc_calloc(7, 30); KEEP(p); return p; }
static FRAME void *second_realloc(void *p) { p = __libc_realloc(p, 400); KEEP(p); return p; }
static FRAME int second_aligned(void) {
    void *d = __libc_memalign(64, 310), *e = __libc_valloc(320), *f = __libc_pvalloc(330);
    KEEP(d);
    KEEP(e);
    KEEP(f);
    return d && e && f;
}
static FRAME void *wrapper(size_t size) { void *p = __libc_malloc(size); KEEP(p); return p; }
static FRAME void *wrapped(void) { void *p = wrapper(700); KEEP(p); return p; }

int main(void) {
    second_malloc();
    second_free();
    void *c = second_realloc(second_calloc());
    EXPECT(c != NULL, 10);
    EXPECT(second_aligned(), 11);
    EXPECT(wrapped() != NULL, 12);
    __libc_free(NULL);
    return 0;
}
