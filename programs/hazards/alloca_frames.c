/* Hazard: frames whose size is known only at run time.
 * With alloca and variable-length arrays the frame is found through rbp even under -fomit-frame-pointer: the saved rbp
 * lies at another distance each time, and the same return addresses stand at other slots.
 *
 *   leaf_alloca under with_alloca, sizes 16, 32, … 1,600: 100 allocations of 40 bytes
 *   leaf_vla under vla_body under with_vla (loop), lengths 1 … 100: 100 allocations of 24 bytes
 *   leaf_nested under with_alloca_inner under with_alloca_outer, sizes i and 101 - i: 100 allocations of 8 bytes
 * Each block is freed by the function that called for it, right away: temporary 300.
 * allocations 300; bytes 4,000 + 2,400 + 800 = 7,200; frees 300; peak: one block at a time, 40 in 1; leaked 0. Every
 * call site stands for one stack, whatever the frame's size: 3 stacks in all. */
#include "hazard.h"
#include <alloca.h>

static FRAME void *leaf_alloca(void) { void *p = malloc(40); KEEP(p); return p; }
static FRAME void *leaf_vla(void) { void *p = malloc(24); KEEP(p); return p; }
static FRAME void *leaf_nested(void) { void *p = malloc(8); KEEP(p); return p; }

static FRAME void with_alloca(size_t size) {
    char *space = alloca(size);
    memset(space, 0x5a, size);
    KEEP(space);
    free(leaf_alloca());
    KEEP(space);
}
static FRAME void vla_body(int length) {
    long space[length];
    for (int i = 0; i < length; i++) space[i] = i;
    KEEP(space);
    free(leaf_vla());
    KEEP(space);
}
static FRAME void with_vla(void) {
    for (int length = 1; length <= 100; length++) vla_body(length);
}
static FRAME void with_alloca_inner(size_t size) {
    char *space = alloca(size);
    KEEP(space);
    free(leaf_nested());
    KEEP(space);
}
static FRAME void with_alloca_outer(size_t size, size_t inner) {
    char *space = alloca(size);
    KEEP(space);
    with_alloca_inner(inner);
    KEEP(space);
}

int main(void) {
    for (size_t i = 1; i <= 100; i++) with_alloca(16 * i);
    with_vla();
    for (size_t i = 1; i <= 100; i++) with_alloca_outer(i, 101 - i);
    return 0;
}
