/* Hazard: fork while other threads are inside malloc.
 * The child has only the forking thread, but a copy of every lock, ring position and remembered stack of the others.
 * It must neither hang, nor write into the parent's rings, nor report the parent's blocks.
 *
 * Two threads make and free blocks of 64 bytes (busy_pair, 1,000 pairs each, started before the first fork) while main
 * makes one block (inherited_block, 1,234 bytes) and forks three children, one after the other. Each child makes 5
 * blocks of 100 bytes (child_block), frees the first and the last of them and the inherited one, and ends with
 * _exit(10 + i).
 *   child: allocations 5, bytes 500, frees 3 (the inherited block counts as a free and matches nothing), temporary 1
 *          (its fifth block), peak 500 in 5 blocks, leaked 300 in 3 blocks
 *   parent: allocations 2,000 + 1 + 2 (the threads' dtv) = 2,003, frees 2,001, leaked 2 blocks (dtv) */
#include "hazard.h"
#include <pthread.h>
#include <sys/wait.h>

enum { PAIRS = 1000, CHILDREN = 3 };
static pthread_barrier_t started;

static FRAME void busy_pair(void) {
    void *p = malloc(64);
    KEEP(p);
    free(p);
    STAY();
}
static FRAME void *inherited_block(void) { void *p = malloc(1234); KEEP(p); return p; }
static FRAME void *child_block(void) { void *p = malloc(100); KEEP(p); return p; }

static void *worker(void *unused) {
    pthread_barrier_wait(&started);
    for (int i = 0; i < PAIRS; i++) busy_pair();
    return unused;
}

static FRAME void child(int status, void *inherited) {
    void *blocks[5];
    for (int i = 0; i < 5; i++) blocks[i] = child_block();
    free(blocks[0]);
    free(blocks[4]);
    free(inherited);
    _exit(status);
}

int main(void) {
    pthread_t threads[2];
    void *inherited = inherited_block();
    pthread_barrier_init(&started, NULL, 3);
    for (int t = 0; t < 2; t++) EXPECT(pthread_create(&threads[t], NULL, worker, NULL) == 0, 20);
    pthread_barrier_wait(&started);
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        pid_t pid = fork();
        if (pid == 0) child(10 + i, inherited);
        EXPECT(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 10 + i, 21);
    }
    for (int t = 0; t < 2; t++) pthread_join(threads[t], NULL);
    free(inherited);
    return 0;
}
