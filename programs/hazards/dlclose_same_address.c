/* Hazard: two libraries, one after the other, at the same address.
 * After dlclose the next dlopen maps another file where the first one was: same addresses, other functions. Whoever
 * caches symbols, unwind rules or stacks by address gives the second library's blocks to the first.
 *
 * 50 rounds: open libhazard_a.so, 3 blocks of 40 bytes (lib_a_alloc), close; open libhazard_b.so, 2 blocks of 56 bytes
 * (lib_b_alloc), close. Both are built from dlclose_same_address_library.c with the same layout. Blocks are freed here
 * after the close.
 *   lib_a_alloc  150 allocations, 6,000 bytes      lib_b_alloc  100 allocations, 5,600 bytes
 *   both under use_library; temporary: each last block of a close, unless dlclose or dlopen allocates in between, so
 *     not checked.
 * dlopen allocates for itself, so there are no totals. Ends with status 3 if no address was ever reused: then the
 * hazard was not met. */
#define _GNU_SOURCE
#include "hazard.h"
#include <dlfcn.h>

typedef void *(*allocate)(void);
static allocate seen[2];
static int reused;

static FRAME void use_library(const char *file, const char *symbol, int count, int which) {
    void *blocks[3];
    void *library = dlopen(file, RTLD_NOW);
    EXPECT(library != NULL, 10);
    allocate function = (allocate)dlsym(library, symbol);
    EXPECT(function != NULL, 11);
    seen[which] = function;
    reused += seen[0] == seen[1];
    for (int i = 0; i < count; i++) blocks[i] = function();
    EXPECT(dlclose(library) == 0, 12);
    for (int i = 0; i < count; i++) free(blocks[i]);
}

int main(void) {
    for (int i = 0; i < 50; i++) {
        use_library("libhazard_a.so", "lib_a_alloc", 3, 0);
        use_library("libhazard_b.so", "lib_b_alloc", 2, 1);
    }
    return reused ? 0 : 3;
}
