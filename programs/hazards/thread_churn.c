/* Hazard: thousands of short-lived threads.
 * Each thread needs a slot and a buffer of the recorder; slots must be given back and reused, with nothing lost and no
 * stale state: a new thread must not inherit the remembered stack or the last allocation of the one before.
 *
 * 500 rounds of 4 threads that live at the same time; each makes blocks of 16, 32 and 48 bytes (churn_block) and frees
 * them in the same order. Only the third was the last allocated when it is freed: 1 temporary per thread.
 *   churn_block  6,000 allocations, 2,000 * 96 = 192,000 bytes, 2,000 temporary, 0 leaked
 * Four stacks are made in the first round and reused by all later ones; each has one table (dtv) allocated by
 * pthread_create:
 * allocations 6,004, frees 6,000, leaked 4 blocks. */
#include "hazard.h"
#include <pthread.h>

enum { ROUNDS = 500, AT_ONCE = 4 };
static pthread_barrier_t all_here;

static FRAME void *churn_block(size_t size) { void *p = malloc(size); KEEP(p); return p; }

static void *worker(void *unused) {
    pthread_barrier_wait(&all_here);
    void *a = churn_block(16), *b = churn_block(32), *c = churn_block(48);
    free(a), free(b), free(c);
    return unused;
}

int main(void) {
    pthread_t threads[AT_ONCE];
    pthread_barrier_init(&all_here, NULL, AT_ONCE);
    for (int round = 0; round < ROUNDS; round++) {
        for (int t = 0; t < AT_ONCE; t++) EXPECT(pthread_create(&threads[t], NULL, worker, NULL) == 0, 10);
        for (int t = 0; t < AT_ONCE; t++) pthread_join(threads[t], NULL);
    }
    return 0;
}
