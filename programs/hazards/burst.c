/* Hazard: SIGKILL at a random moment. `burst FILE` runs until it is killed; it has no expected figures of its own.
 * FILE is mapped shared, so what is published there outlives the process: one cache line of 8 little-endian u64 per
 * thread, [0] completed allocations, [1] completed frees, [2] thread id, the rest 0. They are published after every 64
 * operations.
 *
 * Two threads walk i = 0, 1, …: burst_block makes i % 512 + 1 bytes below i % 20 + 1 frames of `under` and puts them
 * in a ring of 32 blocks; an older block in that place is freed first. One turn is 1 allocation and (from i = 32 on) 1
 * free: per thread a recording must hold at least the published figures, and at most 64 operations more than those
 * published last. */
#define _GNU_SOURCE
#include "hazard.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>

enum { THREADS = 2, HELD = 32 };
struct published {
    uint64_t allocations, frees, thread, unused[5];
};
static struct published *board;

static FRAME void *burst_block(size_t size) { void *p = malloc(size); KEEP(p); return p; }
static FRAME void *under(unsigned frames, size_t size) {
    void *p = frames ? under(frames - 1, size) : burst_block(size);
    KEEP(p);
    return p;
}

static void *worker(void *argument) {
    struct published *mine = &board[(long)argument];
    void *held[HELD] = {NULL};
    uint64_t allocations = 0, frees = 0;
    mine->thread = (uint64_t)gettid();
    for (unsigned i = 0;; i++) {
        if (held[i % HELD]) {
            free(held[i % HELD]);
            frees++;
        }
        held[i % HELD] = under(i % 20, i % 512 + 1);
        allocations++;
        if ((allocations + frees) % 64 < 2) {
            __atomic_store_n(&mine->allocations, allocations, __ATOMIC_RELEASE);
            __atomic_store_n(&mine->frees, frees, __ATOMIC_RELEASE);
        }
    }
    return NULL;
}

int main(int count, char **arguments) {
    EXPECT(count == 2, 10);
    int file = open(arguments[1], O_RDWR | O_CREAT | O_TRUNC, 0600);
    EXPECT(file >= 0 && ftruncate(file, THREADS * sizeof *board) == 0, 11);
    board = mmap(NULL, THREADS * sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    EXPECT(board != MAP_FAILED, 12);
    pthread_t threads[THREADS];
    for (long t = 0; t < THREADS; t++) EXPECT(pthread_create(&threads[t], NULL, worker, (void *)t) == 0, 13);
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    return 0;
}
