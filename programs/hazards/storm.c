/* Load for the benchmarks: `storm DEPTH THREADS ITERATIONS`. Each thread goes DEPTH frames down (descend) and there
 * runs ITERATIONS times malloc(64) and free (storm_loop). It prints nothing.
 *
 *   storm_loop  THREADS * ITERATIONS allocations of 64 bytes, as many frees, all temporary, leaked 0
 * Besides, pthread_create allocates one dtv per thread but the first, which is the main thread itself. With 10 2 1000:
 * allocations 2,001, frees 2,000, temporary 2,000, leaked 1 block. */
#include "hazard.h"
#include <pthread.h>

static long depth, threads, iterations;
static pthread_t others[1024];

static FRAME void storm_loop(void) {
    for (long i = 0; i < iterations; i++) {
        void *p = malloc(64);
        KEEP(p);
        free(p);
    }
}
static FRAME void descend(long levels) {
    if (levels > 1) descend(levels - 1);
    else storm_loop();
    STAY();
}
static void *worker(void *unused) {
    descend(depth);
    return unused;
}

int main(int count, char **arguments) {
    EXPECT(count == 4, 10);
    depth = atol(arguments[1]), threads = atol(arguments[2]), iterations = atol(arguments[3]);
    EXPECT(depth >= 1 && threads >= 1 && threads <= 1024 && iterations >= 0, 11);
    for (long t = 1; t < threads; t++) EXPECT(pthread_create(&others[t], NULL, worker, NULL) == 0, 12);
    worker(NULL);
    for (long t = 1; t < threads; t++) pthread_join(others[t], NULL);
    return 0;
}
