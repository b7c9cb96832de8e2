// A producer on another thread moves messages through a channel with room for 8; the consumer drops them.
//
// 1 channel + 1 array of slots + 1000 operations x 1 message = 1002. The thread lives as long as the program, because
// creating one allocates.
//
// expect: allocations=1002 remaining=0 descriptors=0 ops=1000
#include "../c/gate.h"
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

constexpr int OPS = 1000;

template <typename Item> class Channel {
  public:
    explicit Channel(size_t room) : slots(room) {}

    void push(Item item) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return count < slots.size(); });
        slots[(first + count++) % slots.size()] = std::move(item);
        changed.notify_all();
    }

    Item pop() {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return count > 0; });
        Item item = std::move(slots[first]);
        first = (first + 1) % slots.size();
        count--;
        changed.notify_all();
        return item;
    }

  private:
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<Item> slots;
    size_t first = 0, count = 0;
};

using Messages = Channel<std::unique_ptr<int>>;

// Both live as long as the program. What says that the producer is done comes after everything else that it does.
static Channel<Messages *> orders(1);
static Channel<Messages *> done(1);

static void produce() {
    for (;;) {
        Messages *messages = orders.pop();
        for (int operation = 0; operation < OPS; operation++) {
            messages->push(std::make_unique<int>(operation));
            GATE_SEED_ALLOC();         // SEED_ALLOC
            GATE_SEED_LEAK(operation); // SEED_LEAK
        }
        done.push(messages);
    }
}

static void run(void *) {
    auto messages = std::make_unique<Messages>(8);
    GATE_SEED_FD(); // SEED_FD
    orders.push(messages.get());
    for (int operation = 0; operation < OPS; operation++) GATE_EXPECT(*messages->pop() == operation);
    done.pop();
}

int main() {
    std::thread(produce).detach();
    gate_start(OPS);
    mallow_measure("async_channel", run, nullptr);
    // Without the destructors of what the other thread waits for.
    _exit(0);
}
