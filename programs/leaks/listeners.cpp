// Two objects that keep each other alive: shared pointers in a circle, the leak that C++ programs have.
//
// 2,000 rounds make a Button and a Listener each; the Listener is registered with the Button and holds it. One round in four forgets to
// unregister. Then both stay: a control block with the object (make_shared), and the vector's one element. That is 500 times
// 3 blocks.
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

struct Listener;

struct Button {
    std::vector<std::shared_ptr<Listener>> listeners;
    char caption[80] = {};
};

struct Listener {
    std::shared_ptr<Button> button;
    char state[120] = {};
};

static std::shared_ptr<Button> make_button()
{
    return std::make_shared<Button>(); // the leak
}

static void round_of(int round)
{
    auto button = make_button();
    auto listener = std::make_shared<Listener>();
    listener->button = button;
    button->listeners.push_back(listener);
    if (round % 4 != 1)
        button->listeners.clear();
}

int main()
{
    auto next = std::chrono::steady_clock::now();
    for (int round = 0; round < 2000; round++) {
        round_of(round);
        next += std::chrono::milliseconds(1);
        std::this_thread::sleep_until(next);
    }
}
