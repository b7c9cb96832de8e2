// A promise with a chain of 16 futures, each derived from the one before by a std::function.
//
// A state is one block (make_shared). A callback captures a shared pointer and a function, 24 bytes, more than the 16 that
// std::function holds itself, so it is 1 block; the vector that holds it is 1 block.
// 1000 operations x (1 state + 16 links x (1 state + 1 callback + 1 vector)) = 49000.
//
// expect: allocations=49000 remaining=0 descriptors=0 ops=1000
#include "../c/gate.h"
#include <functional>
#include <memory>
#include <utility>
#include <vector>

constexpr int OPS = 1000, LINKS = 16;

struct State {
    long value = 0;
    std::vector<std::function<void(long)>> callbacks;

    void fulfil(long with) {
        value = with;
        for (auto &callback : callbacks) callback(with);
        callbacks.clear();
    }
};

using Future = std::shared_ptr<State>;

static Future then(const Future &future, long (*function)(long)) {
    Future derived = std::make_shared<State>();
    future->callbacks.push_back([derived, function](long value) { derived->fulfil(function(value)); });
    return derived;
}

static void run(void *) {
    GATE_SEED_FD(); // SEED_FD
    for (int operation = 0; operation < OPS; operation++) {
        Future promise = std::make_shared<State>();
        Future last = promise;
        for (int link = 0; link < LINKS; link++) last = then(last, [](long value) { return value + 1; });
        promise->fulfil(operation);
        GATE_EXPECT(last->value == operation + LINKS);
        GATE_SEED_ALLOC();         // SEED_ALLOC
        GATE_SEED_LEAK(operation); // SEED_LEAK
    }
}

int main() {
    gate_start(OPS);
    mallow_measure("callback_chain", run, nullptr);
}
