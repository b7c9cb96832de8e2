/* Hazard: blocks of two allocators, of which one places them 32 bytes apart at least, and the other one 16.
 * The library is loaded while the program runs, after the C library's blocks were counted.
 *
 *   apart     1,000 x malloc(1 … 24), of which each third one is freed: 12,436 bytes, leaked 8,613 in 666
 *   close_by  1,000 x operator new(1 … 16), of which each third one is deleted: 8,468 bytes, leaked 5,637 in 666;
 *             the last one is deleted, with nothing allocated in between: temporary 1 */
#include "hazard.h"
#include <dlfcn.h>

static void *(*give)(size_t);
static void (*take)(void *);
static void *blocks[2000];

static FRAME void *apart(size_t size) { void *p = malloc(size); KEEP(p); return p; }
static FRAME void *close_by(size_t size) { void *p = give(size); KEEP(p); return p; }

int main(void) {
    for (size_t i = 0; i < 1000; i++) blocks[i] = apart(i % 24 + 1);
    void *library = dlopen("libclose_blocks.so", RTLD_NOW | RTLD_GLOBAL);
    EXPECT(library, 20);
    /* The first definition that the loader finds, as a call of the program's own would: a profiler's, if there is one. */
    *(void **)&give = dlsym(RTLD_DEFAULT, "_Znwm");
    *(void **)&take = dlsym(RTLD_DEFAULT, "_ZdlPv");
    EXPECT(give && take, 21);
    for (size_t i = 0; i < 1000; i++) {
        blocks[1000 + i] = close_by(i % 16 + 1);
        if (i > 0) EXPECT((char *)blocks[1000 + i] - (char *)blocks[999 + i] == 16, 22);
    }
    for (size_t i = 0; i < 1000; i += 3) {
        take(blocks[1000 + i]);
        free(blocks[i]);
    }
    return 0;
}
