// operator new for a type with more alignment than malloc gives, alone and as an array.
//
// 1000 operations x (1 object + 1 array) = 2000.
//
// expect: allocations=2000 remaining=0 descriptors=0 ops=1000
#include "../c/gate.h"
#include <cstdint>
#include <memory>

constexpr int OPS = 1000;

struct alignas(64) Line {
    char bytes[64];
};

static void check(const Line *line) {
    mallow_keep(line);
    GATE_EXPECT(reinterpret_cast<uintptr_t>(line) % 64 == 0);
}

static void run(void *) {
    GATE_SEED_FD(); // SEED_FD
    for (int operation = 0; operation < OPS; operation++) {
        auto line = std::make_unique<Line>();
        auto lines = std::make_unique<Line[]>(4);
        check(line.get());
        check(lines.get());
        GATE_SEED_ALLOC();         // SEED_ALLOC
        GATE_SEED_LEAK(operation); // SEED_LEAK
    }
}

int main() {
    gate_start(OPS);
    mallow_measure("aligned_new", run, nullptr);
}
