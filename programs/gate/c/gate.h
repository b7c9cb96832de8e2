/* What every test of the suite in C and C++ shares: the seeded faults, and a way to fail. Nothing in here allocates
 * unless a fault is compiled in. */
#ifndef GATE_H
#define GATE_H

#include "mallow.h"
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A fault is compiled in with -DSEED_ALLOC, -DSEED_LEAK or -DSEED_FD. The line that the gate must then name is the
 * one that carries the macro and the comment of that name. */
#ifdef SEED_ALLOC
/* One allocation more per operation. */
#define GATE_SEED_ALLOC()                                                                                              \
    do {                                                                                                               \
        void *seeded = malloc(24);                                                                                     \
        mallow_keep(seeded);                                                                                           \
        free(seeded);                                                                                                  \
    } while (0)
#else
#define GATE_SEED_ALLOC() ((void)0)
#endif

#ifdef SEED_LEAK
/* One block that nobody frees, every hundredth operation. */
#define GATE_SEED_LEAK(operation)                                                                                      \
    do {                                                                                                               \
        if ((operation) % 100 == 0) {                                                                                  \
            void *seeded = malloc(40);                                                                                 \
            mallow_keep(seeded);                                                                                       \
        }                                                                                                              \
    } while (0)
#else
#define GATE_SEED_LEAK(operation) ((void)(operation))
#endif

#ifdef SEED_FD
/* One descriptor that nobody closes. */
#define GATE_SEED_FD() ((void)open("/dev/null", O_RDONLY | O_CLOEXEC))
#else
#define GATE_SEED_FD() ((void)0)
#endif

/* Ends the program with a status that is not zero, without stdio, which would allocate. */
#define GATE_EXPECT(condition) ((condition) ? (void)0 : gate_fail(#condition))

static inline void gate_fail(const char *what) {
    if (write(2, what, strlen(what)) < 0 || write(2, "\n", 1) < 0) _exit(91);
    _exit(90);
}

/* A test that hangs ends by itself. */
static inline void gate_start(uint64_t ops) {
    alarm(300);
    mallow_ops(ops);
}

/* A block that the optimiser cannot remove. */
static inline void *gate_block(size_t bytes) {
    void *block = malloc(bytes);
    if (!block) gate_fail("out of memory");
    mallow_keep(block);
    return block;
}
#endif
