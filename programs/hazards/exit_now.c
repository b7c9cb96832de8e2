/* Hazard: _exit in the middle of the work.
 * No atexit handler, no destructor: whoever keeps events in the process until then loses them.
 *
 * work makes 1,000 blocks of 24 bytes (work_block) and frees every one whose number is not a multiple of 5, each right
 * after it was made: 800 frees, all temporary. Then the program ends, three frames deep, by _exit(5): status 5.
 * allocations 1,000; bytes 24000; frees 800; temporary 800; leaked 200 blocks = 4800 bytes.
 * peak: block number 995 arrives as the 200th multiple of 5; the blocks 996 to 999 come on top, one at a time: 201
 * blocks = 4824 bytes. */
#include "hazard.h"

static FRAME void *work_block(void) { void *p = malloc(24); KEEP(p); return p; }
static FRAME void work(void) {
    for (int i = 0; i < 1000; i++) {
        void *p = work_block();
        if (i % 5) free(p);
    }
}
static FRAME void end_here(void) {
    work();
    _exit(5);
    STAY();
}
static FRAME void go_deeper(void) { end_here(); STAY(); }

int main(void) {
    go_deeper();
    return 0;
}
