// Computes for a given number of rounds and does nothing else: each run does the same work, so what differs between runs is the machine.
#include <stdint.h>
#include <stdlib.h>

int main(int count, char **words) {
    uint64_t rounds = count > 1 ? strtoull(words[1], NULL, 10) : 0, state = 1;
    for (uint64_t round = 0; round < rounds; round++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    return state == 0;
}
