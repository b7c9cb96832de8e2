/* Load for the benchmarks: `fresh_frames LEVELS ROUNDS`. ROUNDS times the program goes down LEVELS frames, each of them one of two
 * functions, makes 64 bytes there (leaf), frees them, and goes back up. Which functions is drawn, but the first is never that of the
 * round before: every frame of each stack but main's has to be walked anew. There are 64 different stacks. It prints nothing.
 *
 *   leaf  ROUNDS allocations of 64 bytes, as many frees, all temporary, leaked 0
 * With 20 1000: allocations 1,000, frees 1,000. */
#include "hazard.h"

enum { PATH_BITS = 6 };

static FRAME void left(long levels, unsigned path);
static FRAME void right(long levels, unsigned path);

static FRAME void leaf(void) {
    void *p = malloc(64);
    KEEP(p);
    free(p);
}

static inline __attribute__((always_inline)) void go(long levels, unsigned path) {
    unsigned rest = path >> 1 | (path & 1) << (PATH_BITS - 1);
    if (levels == 0) leaf();
    else if (path & 1) left(levels - 1, rest);
    else right(levels - 1, rest);
    STAY();
}
static FRAME void left(long levels, unsigned path) { go(levels, path); }
static FRAME void right(long levels, unsigned path) { go(levels, path); }

int main(int count, char **words) {
    EXPECT(count == 3, 10);
    unsigned long state = 88172645463325252UL;
    for (long levels = atol(words[1]), round = 0, rounds = atol(words[2]); round < rounds; round++) {
        state = state * 6364136223846793005UL + 1442695040888963407UL;
        go(levels, (state >> (64 - PATH_BITS) & ~1u) | (round & 1));
    }
    return 0;
}
