// Hazard: C++ exceptions through frames that own memory.
// The unwinder of the language runs destructors in the middle of a throw; the exception object itself is allocated by
// __cxa_allocate_exception with malloc, as is its header. Frames vanish without returning.
//
// 10 rounds: descend goes 20 levels down, each holding an Owned block of 50 bytes (own_block, called by descend); at
// the bottom throw_at_bottom throws an int: 128 bytes of header + 4 = 132 bytes. Level 10 catches and rethrows (the
// same object, no allocation); round catches it at last.
//   own_block        200 allocations, 10,000 bytes
//   throw_at_bottom  10 allocations, 1,320 bytes, all temporary: nothing is allocated between the throw and the end of
//                    the catch
// With libstdc++'s emergency pool (1 allocation of 72,704 bytes before main, kept): allocations 211, bytes 84,024,
// frees 210, temporary 10, leaked 72,704 in 1. Peak: 72,704 + 20 * 50 + 132 = 73,836 in 22 blocks.
#include "hazard.h"

static FRAME void *own_block() { void *p = malloc(50); KEEP(p); return p; }
struct Owned {
    void *block;
    explicit Owned(void *p) : block(p) {}
    ~Owned() { free(block); }
};

static FRAME void throw_at_bottom() { throw 42; }

static FRAME void descend(int level) {
    Owned owned(own_block());
    KEEP(owned.block);
    if (level == 20) {
        throw_at_bottom();
    } else if (level == 10) {
        try {
            descend(level + 1);
        } catch (int) {
            throw;
        }
    } else {
        descend(level + 1);
    }
    STAY();
}

static FRAME int round_of_throwing() {
    try {
        descend(1);
    } catch (int value) {
        return value;
    }
    return 0;
}

int main() {
    for (int i = 0; i < 10; i++) EXPECT(round_of_throwing() == 42, 10);
    return 0;
}
