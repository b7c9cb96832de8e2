/* Hazard: deep stacks, each of them another: a fixed depth cuts them off at a different frame each time, and a table of stacks
 * fills up.
 *
 * argv: LEVELS ROUNDS [few]. ROUNDS times the program goes down LEVELS frames, each of them one of two functions by chance, and back;
 * every frame makes 16 bytes on the way down and frees them at once: LEVELS x ROUNDS allocations and frees, each from a stack of its
 * own where there are many levels. With `few` it is always the same function, and there are LEVELS stacks. */
#include "hazard.h"

static unsigned long state = 88172645463325252UL;
static unsigned always;
static unsigned chance(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 33 & 1) | always;
}

static FRAME void left(int levels);
static FRAME void right(int levels);

static inline __attribute__((always_inline)) void go(int levels) {
    void *p = malloc(16);
    KEEP(p);
    free(p);
    if (levels == 1) return;
    if (chance()) left(levels - 1);
    else right(levels - 1);
}
static FRAME void left(int levels) { go(levels); STAY(); }
static FRAME void right(int levels) { go(levels); STAY(); }

int main(int argc, char **argv) {
    EXPECT(argc == 3 || argc == 4, 2);
    always = argc == 4;
    for (int round = atoi(argv[2]); round > 0; round--) left(atoi(argv[1]));
    return 0;
}
