// Writes into a std::vector that has room and reads from it; two of the reads copy.
//
// 1 storage + 1000 operations x (1 std::vector of bytes + 1 std::string of more than 15 bytes) = 2001.
//
// expect: allocations=2001 remaining=0 descriptors=0 ops=1000
#include "../c/gate.h"
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

constexpr int OPS = 1000;

class Buffer {
  public:
    explicit Buffer(size_t room) { bytes.reserve(room); }

    void clear() {
        bytes.clear();
        reader = 0;
    }

    void put(uint64_t number) {
        for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<uint8_t>(number >> shift));
    }

    void put(std::string_view text) { bytes.insert(bytes.end(), text.begin(), text.end()); }

    uint64_t number() {
        uint64_t value = 0;
        for (int i = 0; i < 8; i++) value = value << 8 | bytes[reader++];
        return value;
    }

    std::vector<uint8_t> copy(size_t length) {
        auto from = bytes.begin() + static_cast<std::ptrdiff_t>(reader);
        reader += length;
        return {from, from + static_cast<std::ptrdiff_t>(length)};
    }

    std::string text(size_t length) {
        auto from = bytes.begin() + static_cast<std::ptrdiff_t>(reader);
        reader += length;
        return {from, from + static_cast<std::ptrdiff_t>(length)};
    }

  private:
    std::vector<uint8_t> bytes;
    size_t reader = 0;
};

static void run(void *) {
    Buffer buffer(256);
    GATE_SEED_FD(); // SEED_FD
    for (int operation = 0; operation < OPS; operation++) {
        buffer.clear();
        buffer.put(static_cast<uint64_t>(operation));
        buffer.put(7);
        buffer.put("0123456789abcdef");
        buffer.put("how are you this morning");
        GATE_EXPECT(buffer.number() == static_cast<uint64_t>(operation));
        GATE_EXPECT(buffer.number() == 7);
        GATE_EXPECT(buffer.copy(16).size() == 16);
        GATE_EXPECT(buffer.text(24) == "how are you this morning");
        GATE_SEED_ALLOC();         // SEED_ALLOC
        GATE_SEED_LEAK(operation); // SEED_LEAK
    }
}

int main() {
    gate_start(OPS);
    mallow_measure("buffer_rw", run, nullptr);
}
