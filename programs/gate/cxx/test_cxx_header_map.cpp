// Builds a std::map of headers, looks up in it and replaces one value.
//
// Keys are short enough to lie inside std::string (15 bytes), values are not.
// 1000 operations x 5 headers x (1 node + 1 value) = 10000. The value that is replaced is shorter than the old one, so its
// room is used again: 0. Looking up by text needs no string, because the map compares with std::less<>: 0.
//
// expect: allocations=10000 remaining=0 descriptors=0 ops=1000
#include "../c/gate.h"
#include <map>
#include <string>

constexpr int OPS = 1000;

using Headers = std::map<std::string, std::string, std::less<>>;

static Headers build() {
    Headers headers;
    headers.emplace("host", "localhost.localdomain");
    headers.emplace("user-agent", "a client that has a name");
    headers.emplace("accept", "text/plain, text/html, */*");
    headers.emplace("content-type", "text/plain; charset=utf-8");
    headers.emplace("cookie", "session=0123456789abcdef");
    return headers;
}

static void run(void *) {
    GATE_SEED_FD(); // SEED_FD
    for (int operation = 0; operation < OPS; operation++) {
        Headers headers = build();
        headers.find("cookie")->second = "session=none-at-all";
        GATE_EXPECT(headers.find("content-length") == headers.end());
        GATE_EXPECT(headers.size() == 5);
        GATE_SEED_ALLOC();         // SEED_ALLOC
        GATE_SEED_LEAK(operation); // SEED_LEAK
    }
}

int main() {
    gate_start(OPS);
    mallow_measure("header_map", run, nullptr);
}
