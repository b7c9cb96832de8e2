/* Hazard: more libraries, with long paths, than the list of modules has room for.
 * What is not in the list has no name, or that of the library that was at its address before. That must be said.
 *
 * libhazard_b.so is used N times, each time by another path of nearly 1,000 bytes (folders of 200 letters, and a link); then
 * libhazard_a.so once. Each use is 1 block of 56 or 40 bytes, freed behind the close. The two are those
 * of library_cycles. How far the list reaches depends on the folder, so no figure is stated. */
#include "hazard.h"
#include <dlfcn.h>
#include <stdio.h>
#include <sys/stat.h>

typedef void *(*allocate)(void);

static FRAME void use_library(const char *file, const char *symbol) {
    void *library = dlopen(file, RTLD_NOW);
    EXPECT(library != NULL, 10);
    allocate function = (allocate)dlsym(library, symbol);
    EXPECT(function != NULL, 11);
    void *block = function();
    EXPECT(dlclose(library) == 0, 12);
    free(block);
}

int main(int count, char **words) {
    EXPECT(count == 2, 1);
    static char folder[1000], file[1040], target[1000];
    int length = snprintf(folder, sizeof folder, "long");
    EXPECT(getcwd(target, sizeof target - 20) != NULL, 2);
    strcat(target, "/libhazard_b.so");
    mkdir(folder, 0700);
    while (length < 750) {
        folder[length++] = '/';
        memset(folder + length, 'x', 200);
        length += 200;
        mkdir(folder, 0700);
    }
    for (int i = 0; i < atol(words[1]); i++) {
        snprintf(file, sizeof file, "%s/%d.so", folder, i);
        EXPECT(symlink(target, file) == 0, 13);
        use_library(file, "lib_b_alloc");
    }
    use_library("./libhazard_a.so", "lib_a_alloc");
    return 0;
}
