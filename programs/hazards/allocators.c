/* Hazard: another allocator in place of libc's.
 * jemalloc, tcmalloc and mimalloc, preloaded or linked as shared libraries, bring their own malloc family. The
 * recorder must stand before them and forward to them, not to libc; what they do inside (they may map memory, or call
 * each other) is theirs.
 *
 * The program's own functions give the same figures under each:
 *   plain     100 x malloc(1,000), each freed at once: 100,000 bytes, temporary 100
 *   zeroed    10 x calloc(25, 4), each freed at once: 1,000 bytes, temporary 10
 *   aligned   10 x aligned_alloc(64, 128), posix_memalign(64, 200), memalign(64, 300): 30 allocations, 6,280 bytes;
 *             kept until freed in release, from the first on: the last one is temporary
 *   grown     10 x realloc to 100, 200, … 1,000: 10 allocations, 5,500 bytes, 9 of them temporary by the next realloc
 *   kept      3 x malloc(77), leaked: 231 bytes */
#define _GNU_SOURCE
#include "hazard.h"
#include <malloc.h>

static FRAME void *plain(void) { void *p = malloc(1000); KEEP(p); return p; }
static FRAME void *zeroed(void) { void *p = calloc(25, 4); KEEP(p); return p; }
static FRAME void aligned(void **blocks) {
    blocks[0] = aligned_alloc(64, 128);
    EXPECT(posix_memalign(&blocks[1], 64, 200) == 0, 10);
    blocks[2] = memalign(64, 300);
    EXPECT(blocks[0] && blocks[2], 11);
}
static FRAME void release(void **blocks, int count) {
    for (int i = 0; i < count; i++) free(blocks[i]);
}
static FRAME void *grown(void *p, size_t size) { p = realloc(p, size); KEEP(p); return p; }
static FRAME void kept(void) { void *p = malloc(77); KEEP(p); STAY(); }

int main(void) {
    void *blocks[30], *growing = NULL;
    for (int i = 0; i < 100; i++) free(plain());
    for (int i = 0; i < 10; i++) free(zeroed());
    for (int i = 0; i < 10; i++) aligned(blocks + 3 * i);
    release(blocks, 30);
    for (size_t i = 1; i <= 10; i++) growing = grown(growing, 100 * i);
    for (int i = 0; i < 3; i++) kept();
    free(growing);
    return 0;
}
