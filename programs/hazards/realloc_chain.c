/* Hazard: realloc chains.
 * realloc may move, stay, fail (the old block stays valid) or free (size 0, returns NULL like a failure does).
 * Profilers report realloc(p, 0) as a leak, lose the old block on a failure, or count old and new together at the
 * peak.
 *
 *   grow_inner (under outer) realloc to 16, 32, … 8192, the first from NULL: 10 allocations, 16*(2^10-1) = 16,368
 *                            bytes, 9 reallocations, 9 frees; each old block is the one allocated just before: 9
 *                            temporary
 *   fail_to_grow             realloc to PTRDIFF_MAX fails: 1 failed, the 8,192 bytes are still there
 *   shrink_to_nothing        realloc(p, 0): 1 free, and the block was the last allocated: 1 temporary
 *   start_from_null          realloc(NULL, 77): 1 allocation, kept: the only leak
 *   first_block 1000, other_block 8, move_up realloc(first, 2000): 3 allocations, 1 reallocation, 1 free, not
 *     temporary
 *   release                  frees other (not temporary: 2000 came after it), then the 2,000 (temporary, the last one)
 * allocations 10+1+3 = 14; bytes 16,368+77+3,008 = 19,453; frees 9+1+1+2 = 13; reallocations 10; temporary 9+1+1 = 11.
 * peak: 8,192 in 1 block: a realloc frees the old block before the new one counts. leaked 77 in 1 block. */
#include "hazard.h"
#include <stdint.h>

static FRAME char *grow_inner(char *p, size_t size) { p = realloc(p, size); KEEP(p); return p; }
static FRAME char *outer(void) {
    char *p = NULL;
    for (int i = 0; i < 10; i++) {
        p = grow_inner(p, (size_t)16 << i);
        p[((size_t)16 << i) - 1] = 'x';
    }
    return p;
}
static FRAME void fail_to_grow(char *p) {
    volatile size_t huge = PTRDIFF_MAX;
    void *q = realloc(p, huge);
    KEEP(q);
    EXPECT(q == NULL, 10);
}
static FRAME void shrink_to_nothing(char *p) {
    volatile size_t nothing = 0;
    void *q = realloc(p, nothing);
    KEEP(q);
    EXPECT(q == NULL, 12);
}
static FRAME void *start_from_null(void) { void *p = realloc(NULL, 77); KEEP(p); return p; }
static FRAME void *first_block(void) { void *p = malloc(1000); KEEP(p); return p; }
static FRAME void *other_block(void) { void *p = malloc(8); KEEP(p); return p; }
static FRAME void *move_up(void *p) { p = realloc(p, 2000); KEEP(p); return p; }
static FRAME void release(void *other, void *moved) { free(other), free(moved); STAY(); }

int main(void) {
    char *p = outer();
    fail_to_grow(p);
    EXPECT(p[8191] == 'x' && p[15] == 'x', 11);
    shrink_to_nothing(p);
    void *kept = start_from_null();
    KEEP(kept);
    void *first = first_block(), *other = other_block();
    release(other, move_up(first));
    return 0;
}
