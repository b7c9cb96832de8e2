/* Hazard: two libraries at the same address, one after the other, thousands of times.
 * Each unload begins a generation, and in each the library that comes next is met anew. Whoever writes down all that is known of it
 * each time has no room left at some point, and from then on one library has the other's name.
 *
 * N loads, libhazard_a.so and libhazard_b.so in turn (built from dlclose_same_address_library.c with the same layout): in each
 * 1 block of 40 bytes (lib_a_alloc) or 56 bytes (lib_b_alloc), which is freed behind the close. With N = 20,000:
 *   lib_a_alloc  10,000 allocations, 400,000 bytes      lib_b_alloc  10,000 allocations, 560,000 bytes
 * dlopen allocates for itself, so there are no totals. Ends with status 3 if no address was ever reused. */
#include "hazard.h"
#include <dlfcn.h>

typedef void *(*allocate)(void);

static FRAME allocate use_library(const char *file, const char *symbol) {
    void *library = dlopen(file, RTLD_NOW);
    EXPECT(library != NULL, 10);
    allocate function = (allocate)dlsym(library, symbol);
    EXPECT(function != NULL, 11);
    void *block = function();
    EXPECT(dlclose(library) == 0, 12);
    free(block);
    return function;
}

int main(int count, char **words) {
    EXPECT(count == 2, 1);
    long reused = 0, loads = atol(words[1]);
    for (long i = 0; i < loads; i += 2)
        reused += use_library("libhazard_a.so", "lib_a_alloc") == use_library("libhazard_b.so", "lib_b_alloc");
    return reused ? 0 : 3;
}
