/* Hazard: abort in the middle of the work.
 * The process is killed by SIGABRT from inside libc; nothing of the program runs any more.
 *
 * work makes 1,000 blocks of 40 bytes (work_block) and frees every one whose number is not a multiple of 5, each right
 * after it was made: 800 frees, all temporary. Then the program ends, three frames deep, by abort(): killed by SIGABRT
 * (6).
 * allocations 1,000; bytes 40000; frees 800; temporary 800; leaked 200 blocks = 8000 bytes.
 * peak: block number 995 arrives as the 200th multiple of 5; the blocks 996 to 999 come on top, one at a time: 201
 * blocks = 8040 bytes. */
#include "hazard.h"

static FRAME void *work_block(void) { void *p = malloc(40); KEEP(p); return p; }
static FRAME void work(void) {
    for (int i = 0; i < 1000; i++) {
        void *p = work_block();
        if (i % 5) free(p);
    }
}
static FRAME void end_here(void) {
    work();
    abort();
    STAY();
}
static FRAME void go_deeper(void) { end_here(); STAY(); }

int main(void) {
    go_deeper();
    return 0;
}
