/* Schedules 1000 timers on a loop and runs them in the order of their deadlines. Each run has its own loop.
 *
 * 1 loop + the heap's array, which doubles by realloc from 16 to 1024 (1 allocation + 6 reallocations, each of which
 * counts) = 8, + 1000 operations x 1 timer = 1008.
 *
 * expect: allocations=1008 remaining=0 descriptors=0 ops=1000
 */
#include "gate.h"

enum { OPS = 1000 };

struct timer {
    unsigned deadline;
};

struct loop {
    struct timer **heap;
    size_t count, capacity;
};

static void swap(struct loop *loop, size_t a, size_t b) {
    struct timer *timer = loop->heap[a];
    loop->heap[a] = loop->heap[b];
    loop->heap[b] = timer;
}

static int is_before(struct loop *loop, size_t a, size_t b) {
    return loop->heap[a]->deadline < loop->heap[b]->deadline;
}

static void schedule(struct loop *loop, unsigned deadline) {
    struct timer *timer = gate_block(sizeof *timer);
    size_t at = loop->count++;
    if (at == loop->capacity) {
        loop->capacity = at ? 2 * at : 16;
        loop->heap = realloc(loop->heap, loop->capacity * sizeof(struct timer *));
        GATE_EXPECT(loop->heap != NULL);
    }
    timer->deadline = deadline;
    loop->heap[at] = timer;
    for (; at && is_before(loop, at, (at - 1) / 2); at = (at - 1) / 2) swap(loop, at, (at - 1) / 2);
}

static struct timer *take_first(struct loop *loop) {
    struct timer *first = loop->heap[0];
    size_t at = 0, child;
    loop->heap[0] = loop->heap[--loop->count];
    while ((child = 2 * at + 1) < loop->count) {
        if (child + 1 < loop->count && is_before(loop, child + 1, child)) child++;
        if (!is_before(loop, child, at)) break;
        swap(loop, at, child);
        at = child;
    }
    return first;
}

static void run(void *context) {
    struct loop *loop = gate_block(sizeof *loop);
    unsigned operation, earlier = 0;
    (void)context;
    memset(loop, 0, sizeof *loop);
    GATE_SEED_FD(); /* SEED_FD */
    for (operation = 0; operation < OPS; operation++) {
        /* 389 and 1009 have no divisor in common, so that all deadlines differ. */
        schedule(loop, (operation + 1) * 389 % 1009);
        GATE_SEED_ALLOC();         /* SEED_ALLOC */
        GATE_SEED_LEAK(operation); /* SEED_LEAK */
    }
    while (loop->count) {
        struct timer *timer = take_first(loop);
        GATE_EXPECT(timer->deadline > earlier);
        earlier = timer->deadline;
        free(timer);
    }
    free(loop->heap);
    free(loop);
}

int main(void) {
    gate_start(OPS);
    mallow_measure("timer_heap", run, NULL);
    return 0;
}
