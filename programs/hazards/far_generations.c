/* Hazard: a library at an address where another one was 4,096 unloads before.
 * Whoever notes only the lower bits of the number of unloads takes it for one that is known, and gives it the name of the one
 * that was there last.
 *
 * libhazard_a.so is used twice, with an unload behind each; then libhazard_e.so, whose code is never called, is loaded and unloaded
 * 4,094 times, and libhazard_a.so used once more. Then libhazard_b.so is used at that address. Each use is 1 block of 40 bytes
 * (lib_a_alloc) or 56 bytes (lib_b_alloc), freed behind the close. All are built from dlclose_same_address_library.c with the same layout.
 *   lib_a_alloc  3 allocations, 120 bytes      lib_b_alloc  1 allocation, 56 bytes
 * dlopen allocates for itself, so there are no totals. Ends with status 3 if the address was another one. */
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

int main(void) {
    use_library("libhazard_a.so", "lib_a_alloc");
    use_library("libhazard_a.so", "lib_a_alloc");
    for (int i = 0; i < 4094; i++) {
        void *library = dlopen("libhazard_e.so", RTLD_NOW);
        EXPECT(library != NULL, 13);
        EXPECT(dlclose(library) == 0, 14);
    }
    allocate first = use_library("libhazard_a.so", "lib_a_alloc");
    return use_library("libhazard_b.so", "lib_b_alloc") == first ? 0 : 3;
}
