// Fills a std::deque and changes every element in place.
//
// libstdc++ keeps 512 bytes in a node, 128 ints: 1000 / 128 + 1 = 8 nodes, and 1 array of pointers to them = 9. Changing in
// place = 0. One operation is one element changed.
//
// expect: allocations=9 remaining=0 descriptors=0 ops=1000
#include "../c/gate.h"
#include <deque>

constexpr int OPS = 1000;

static void run(void *) {
    std::deque<int> ring(OPS);
    GATE_SEED_FD(); // SEED_FD
    for (int operation = 0; operation < OPS; operation++) {
        ring[static_cast<size_t>(operation)] += operation;
        GATE_SEED_ALLOC();         // SEED_ALLOC
        GATE_SEED_LEAK(operation); // SEED_LEAK
    }
    GATE_EXPECT(ring.back() == OPS - 1);
}

int main() {
    gate_start(OPS);
    mallow_measure("ring_modify", run, nullptr);
}
