// Copy on write with std::shared_ptr: the first write through a second handle copies, the next do not.
//
// make_shared puts the count and the vector into one block, the vector's storage is another: 2 per value.
// 2 for the original + 1000 operations x 2 for the copy = 2002.
//
// expect: allocations=2002 remaining=0 descriptors=0 ops=1000
#include "../c/gate.h"
#include <memory>
#include <vector>

constexpr int OPS = 1000;

class Values {
  public:
    explicit Values(size_t count) : storage(std::make_shared<std::vector<int>>(count)) {}

    int at(size_t index) const { return (*storage)[index]; }

    void set(size_t index, int value) {
        if (storage.use_count() > 1) storage = std::make_shared<std::vector<int>>(*storage);
        (*storage)[index] = value;
    }

  private:
    std::shared_ptr<std::vector<int>> storage;
};

static void run(void *) {
    Values original(64);
    GATE_SEED_FD(); // SEED_FD
    for (int operation = 0; operation < OPS; operation++) {
        Values second = original;
        second.set(0, operation + 1);
        second.set(1, operation + 2);
        GATE_EXPECT(original.at(0) == 0 && second.at(1) == operation + 2);
        GATE_SEED_ALLOC();         // SEED_ALLOC
        GATE_SEED_LEAK(operation); // SEED_LEAK
    }
}

int main() {
    gate_start(OPS);
    mallow_measure("cow_copy", run, nullptr);
}
