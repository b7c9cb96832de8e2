/* Hazard: a loop that allocates in two places, in turns, and is forked in its midst.
 * The child goes on in the same frames, at the same stack pointer, on the same stacks, which are new to its recording:
 * whatever the parent's recording knows of them holds for the parent only. Its child does the same once more.
 *
 * Before the loop, so that ids of stacks differ between the processes, a thousand other stacks in the first process.
 *
 *   first process (status 0):  deep 1,000 of 3 bytes; near and far 10 times each, 11 and 22 bytes;
 *                              allocations 1,020, bytes 3,330, all freed at once, peak 22 in 1
 *   child (status 3):          near and far 10 times each; allocations 20, bytes 330
 *   grandchild (status 4):     near and far 10 times each */
#include "hazard.h"
#include <sys/wait.h>

static FRAME void near_block(void) { void *p = malloc(11); KEEP(p); free(p); STAY(); }
static FRAME void far_block(void) { void *p = malloc(22); KEEP(p); free(p); STAY(); }
static FRAME void far_caller(void) { far_block(); STAY(); }
static FRAME void deep(int frames) {
    void *p = malloc(3);
    KEEP(p);
    free(p);
    if (frames > 1) deep(frames - 1);
    STAY();
}

int main(void) {
    int status = 0, wanted = 0;
    deep(1000);
    for (int i = 0; i < 30; i++) {
        if (i == 10 || i == 20) {
            pid_t child = fork();
            if (child != 0) {
                int ended;
                wanted = i == 10 ? 3 : 4;
                EXPECT(waitpid(child, &ended, 0) == child && WIFEXITED(ended) && WEXITSTATUS(ended) == wanted, 20);
                return status;
            }
            status = i == 10 ? 3 : 4;
        }
        near_block();
        far_caller();
    }
    return status;
}
