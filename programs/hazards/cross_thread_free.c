/* Hazard: threads that free each other's blocks.
 * The allocation and its free stand in the buffers of two threads, which may be read in either order; a recorder that
 * pairs them as they come loses both.
 *
 * Two threads each make 1,000 blocks of 1 + i % 100 bytes (make_block: 10 * (1+…+100) = 50,500 bytes per thread), meet
 * at a barrier, and free what the other made, meanwhile making and freeing 1,000 blocks of 7 bytes of their own
 * (own_pair).
 *   make_block  2,000 allocations, 101,000 bytes, 0 temporary (another thread frees them), 0 leaked
 *   own_pair    2,000 allocations, 14,000 bytes, 2,000 temporary: what the other thread does meanwhile does not matter
 * pthread_create allocates one table of thread-local pointers (dtv) per new stack, 2 in all, kept with the cached
 * stacks:
 * allocations 4,002, frees 4,000, leaked 2 blocks. Its size depends on the number of loaded libraries, so bytes stand
 * per site. */
#include "hazard.h"
#include <pthread.h>

enum { BLOCKS = 1000 };
static void *made[2][BLOCKS];
static pthread_barrier_t all_made;

static FRAME void *make_block(int i) { void *p = malloc((size_t)(1 + i % 100)); KEEP(p); return p; }
static FRAME void own_pair(void) {
    void *p = malloc(7);
    KEEP(p);
    free(p);
    STAY();
}
static FRAME void free_block(void *p) { free(p); STAY(); }

static void *worker(void *argument) {
    long self = (long)argument;
    for (int i = 0; i < BLOCKS; i++) made[self][i] = make_block(i);
    pthread_barrier_wait(&all_made);
    for (int i = 0; i < BLOCKS; i++) {
        own_pair();
        free_block(made[1 - self][i]);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[2];
    pthread_barrier_init(&all_made, NULL, 2);
    for (long t = 0; t < 2; t++) EXPECT(pthread_create(&threads[t], NULL, worker, (void *)t) == 0, 10);
    for (int t = 0; t < 2; t++) pthread_join(threads[t], NULL);
    return 0;
}
