/* Hazard: a hole between the segments of the executable, as lld leaves one where it happens to be, and this build on purpose. The
 * unwind tables lie on its other side.
 *
 * 10 blocks of 100 bytes, freed at once.
 *   beyond  10 allocations, 1,000 bytes, all temporary; peak 100 in 1 block, leaked 0 */
#include "hazard.h"

static FRAME void *beyond(size_t bytes) {
    void *p = malloc(bytes);
    STAY();
    return p;
}

int main(void) {
    for (volatile int i = 0; i < 10; i = i + 1)
        free(beyond(100));
    return 0;
}
