/* Hazard: a plug-in that is loaded and unloaded again and again beside code that stays.
 * After each dlclose the plug-in's addresses mean nothing any more. Whoever then forgets all addresses takes the stacks of
 * the program's own code for new ones: after 500 cycles there are 500 of each, a table of stacks is full, and
 * those that come last lose frames.
 *
 * 500 rounds: open libhazard_plugin.so (built from dlclose_same_address_library.c), 1 block of 40 bytes (plugin_alloc), close;
 * then 1 block of 16 bytes (own_alloc) from each of 8 call sites: 2 in `left` or `right`, which are called from 2 places of
 * `own_work` each. Blocks are freed at once, the plug-in's before the close.
 *   plugin_alloc    500 allocations, 20,000 bytes
 *   own_alloc     4,000 allocations, 64,000 bytes, in 8 stacks
 * dlopen allocates for itself, so there are no totals. */
#include "hazard.h"
#include <dlfcn.h>

typedef void *(*allocate)(void);

static FRAME void own_alloc(void) {
    void *block = malloc(16);
    KEEP(block);
    free(block);
}

static FRAME void left(void) {
    own_alloc();
    own_alloc();
    STAY();
}

static FRAME void right(void) {
    own_alloc();
    own_alloc();
    STAY();
}

static FRAME void own_work(void) {
    left();
    right();
    left();
    right();
    STAY();
}

static FRAME void use_plugin(void) {
    void *library = dlopen("libhazard_plugin.so", RTLD_NOW);
    EXPECT(library != NULL, 10);
    allocate function = (allocate)dlsym(library, "plugin_alloc");
    EXPECT(function != NULL, 11);
    free(function());
    EXPECT(dlclose(library) == 0, 12);
    EXPECT(dlopen("libhazard_plugin.so", RTLD_NOW | RTLD_NOLOAD) == NULL, 13);
}

int main(void) {
    for (int i = 0; i < 500; i++) {
        use_plugin();
        own_work();
    }
    return 0;
}
