/* Hazard: a forked child whose parent unloads and loads libraries before the child allocates for the first time.
 * The child inherits what is known of the modules at the fork, and nothing that the parent finds out later: both count their unloads
 * alike from there on, and the third library stands where the second one stood in the parent, after as many unloads.
 *
 * Before the fork 1 block of 40 bytes from libhazard_a.so (lib_a_alloc). Then the parent unloads it and uses libhazard_b.so, 1 block of
 * 56 bytes (lib_b_alloc). Then the child unloads libhazard_a.so and uses libhazard_c.so, 1 block of 72 bytes (lib_c_alloc). All are
 * built from dlclose_same_address_library.c with the same layout; blocks are freed at once.
 *   lib_a_alloc, lib_b_alloc, lib_c_alloc: 1 allocation each
 * dlopen allocates for itself, so there are no totals. Ends with status 3 if the address was not the same one. */
#include "hazard.h"
#include <dlfcn.h>
#include <sys/wait.h>

typedef void *(*allocate)(void);

static FRAME void *load(const char *file, const char *symbol, allocate *function) {
    void *library = dlopen(file, RTLD_NOW);
    EXPECT(library != NULL, 10);
    *function = (allocate)dlsym(library, symbol);
    EXPECT(*function != NULL, 11);
    free((*function)());
    STAY();
    return library;
}

int main(void) {
    int ends[2], status;
    char word = 0;
    allocate first, later;
    void *library = load("libhazard_a.so", "lib_a_alloc", &first);
    EXPECT(pipe(ends) == 0, 12);
    pid_t child = fork();
    EXPECT(child >= 0, 13);
    if (child == 0) {
        EXPECT(read(ends[0], &word, 1) == 1, 14);
        EXPECT(dlclose(library) == 0, 15);
        load("libhazard_c.so", "lib_c_alloc", &later);
        _exit(first == later ? 0 : 3);
    }
    EXPECT(dlclose(library) == 0, 15);
    load("libhazard_b.so", "lib_b_alloc", &later);
    EXPECT(write(ends[1], &word, 1) == 1, 16);
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status), 17);
    return first == later ? WEXITSTATUS(status) : 3;
}
