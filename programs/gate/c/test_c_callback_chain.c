/* A promise with a chain of 16 futures, each derived from the one before by a callback.
 *
 * 1000 operations x (1 promise + 16 links x (1 callback + 1 derived future)) = 33000.
 *
 * expect: allocations=33000 remaining=0 descriptors=0 ops=1000
 */
#include "gate.h"

enum { OPS = 1000, LINKS = 16 };

struct future;

struct callback {
    long (*function)(long);
    struct future *derived;
};

struct future {
    long value;
    struct callback *callback;
};

static struct future *future_new(void) {
    struct future *future = gate_block(sizeof *future);
    future->value = 0;
    future->callback = NULL;
    return future;
}

static struct future *then(struct future *future, long (*function)(long)) {
    struct callback *callback = gate_block(sizeof *callback);
    callback->function = function;
    callback->derived = future_new();
    future->callback = callback;
    return callback->derived;
}

/* Fulfils the chain from its first future on, frees all but the last and returns that one's value. */
static void fulfil(struct future *future, long value) {
    while (future->callback) {
        struct callback *callback = future->callback;
        struct future *derived = callback->derived;
        value = callback->function(value);
        free(callback);
        free(future);
        future = derived;
    }
    future->value = value;
}

static long add_one(long value) {
    return value + 1;
}

static void run(void *context) {
    int operation, link;
    (void)context;
    GATE_SEED_FD(); /* SEED_FD */
    for (operation = 0; operation < OPS; operation++) {
        struct future *promise = future_new(), *last = promise;
        for (link = 0; link < LINKS; link++) last = then(last, add_one);
        fulfil(promise, operation);
        GATE_EXPECT(last->value == operation + LINKS);
        free(last);
        GATE_SEED_ALLOC();         /* SEED_ALLOC */
        GATE_SEED_LEAK(operation); /* SEED_LEAK */
    }
}

int main(void) {
    gate_start(OPS);
    mallow_measure("callback_chain", run, NULL);
    return 0;
}
