/* Hazard: over-aligned locals.
 * The prologue rounds rsp down (`and $-64, %rsp`), so the distance from the frame's slots to its caller's depends on
 * where the caller stood; the CFA comes from rbp or, worse, from a saved copy in memory through a DWARF expression.
 *
 * plain and aligned frames call each other six deep, entered with 64 different offsets of the stack (shift, by
 * alloca).
 *   leaf under aligned_64, plain, aligned_256, shift: 64 allocations of 33 bytes = 2,112, each freed at once in main.
 * allocations 64; bytes 2,112; frees 64; temporary 64; peak 33 in 1; leaked 0; 1 stack. */
#include "hazard.h"
#include <alloca.h>
#include <stdint.h>

static FRAME void *leaf(void) { void *p = malloc(33); KEEP(p); return p; }
static FRAME void *aligned_64(void) {
    _Alignas(64) char space[64];
    KEEP(space);
    EXPECT((uintptr_t)space % 64 == 0, 10);
    void *p = leaf();
    KEEP(space);
    return p;
}
static FRAME void *plain(void) {
    char space[24];
    KEEP(space);
    void *p = aligned_64();
    KEEP(space);
    return p;
}
static FRAME void *aligned_256(int a, int b, int c, int d, int e, int f, int seventh) {
    _Alignas(256) char space[512];
    KEEP(space);
    EXPECT((uintptr_t)space % 256 == 0 && a + b + c + d + e + f == 21 && seventh == 7, 11);
    void *p = plain();
    KEEP(space);
    return p;
}
static FRAME void *shift(size_t bytes) {
    char *space = alloca(bytes);
    KEEP(space);
    void *p = aligned_256(1, 2, 3, 4, 5, 6, 7);
    KEEP(space);
    return p;
}

int main(void) {
    for (size_t i = 0; i < 64; i++) free(shift(16 * i + 1));
    return 0;
}
