// Schedules 1000 timers in a heap of std::unique_ptr and runs them in the order of their deadlines.
//
// The vector doubles from 1 to 1024: 11. 11 + 1000 operations x 1 timer = 1011.
//
// expect: allocations=1011 remaining=0 descriptors=0 ops=1000
#include "../c/gate.h"
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

constexpr int OPS = 1000;

struct Timer {
    unsigned deadline;
};

using Timers = std::vector<std::unique_ptr<Timer>>;

static bool is_later(const std::unique_ptr<Timer> &a, const std::unique_ptr<Timer> &b) {
    return a->deadline > b->deadline;
}

static void schedule(Timers &timers, unsigned deadline) {
    timers.push_back(std::make_unique<Timer>(Timer{deadline}));
    std::push_heap(timers.begin(), timers.end(), is_later);
}

static std::unique_ptr<Timer> take_first(Timers &timers) {
    std::pop_heap(timers.begin(), timers.end(), is_later);
    std::unique_ptr<Timer> first = std::move(timers.back());
    timers.pop_back();
    return first;
}

static void run(void *) {
    Timers timers;
    unsigned earlier = 0;
    GATE_SEED_FD(); // SEED_FD
    for (unsigned operation = 0; operation < OPS; operation++) {
        schedule(timers, (operation + 1) * 389 % 1009);
        GATE_SEED_ALLOC();         // SEED_ALLOC
        GATE_SEED_LEAK(operation); // SEED_LEAK
    }
    while (!timers.empty()) {
        auto timer = take_first(timers);
        GATE_EXPECT(timer->deadline > earlier);
        earlier = timer->deadline;
    }
}

int main() {
    gate_start(OPS);
    mallow_measure("timer_heap", run, nullptr);
}
