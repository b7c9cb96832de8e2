/* Hazard: two libraries, one after the other, at the same address.
 * After dlclose the next dlopen maps another file where the first one was: same addresses, other functions. Whoever
 * caches symbols, unwind rules or stacks by address gives the second library's blocks to the first.
 *
 * Both are used from the same place, so that not a word of the stack tells them apart.
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
    static const char *const files[] = {"libhazard_a.so", "libhazard_b.so"};
    static const char *const symbols[] = {"lib_a_alloc", "lib_b_alloc"};
    for (int i = 0; i < 100; i++) {
        int which = i % 2;
        use_library(files[which], symbols[which], 3 - which, which);
    }
    return reused ? 0 : 3;
}
