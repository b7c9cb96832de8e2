/* Fills a ring that grows, then changes every element in place.
 *
 * The ring starts with room for 16 and doubles: 16, 32, 64, 128, 256, 512, 1024 = 7. Changing in place = 0.
 * One operation is one element changed.
 *
 * expect: allocations=7 remaining=0 descriptors=0 ops=1000
 */
#include "gate.h"

enum { OPS = 1000 };

struct ring {
    long *slots;
    size_t capacity, first, count;
};

static long *slot(struct ring *ring, size_t index) {
    return &ring->slots[(ring->first + index) % ring->capacity];
}

static void grow(struct ring *ring) {
    size_t capacity = ring->capacity ? 2 * ring->capacity : 16, i;
    long *slots = gate_block(capacity * sizeof *slots);
    for (i = 0; i < ring->count; i++) slots[i] = *slot(ring, i);
    free(ring->slots);
    ring->slots = slots;
    ring->capacity = capacity;
    ring->first = 0;
}

static void push(struct ring *ring, long value) {
    if (ring->count == ring->capacity) grow(ring);
    *slot(ring, ring->count++) = value;
}

static void run(void *context) {
    struct ring ring = {NULL, 0, 0, 0};
    int operation;
    (void)context;
    GATE_SEED_FD(); /* SEED_FD */
    for (operation = 0; operation < OPS; operation++) push(&ring, operation);
    for (operation = 0; operation < OPS; operation++) {
        *slot(&ring, (size_t)operation) += 1;
        GATE_SEED_ALLOC();         /* SEED_ALLOC */
        GATE_SEED_LEAK(operation); /* SEED_LEAK */
    }
    GATE_EXPECT(*slot(&ring, 999) == 1000);
    free(ring.slots);
}

int main(void) {
    gate_start(OPS);
    mallow_measure("ring_modify", run, NULL);
    return 0;
}
