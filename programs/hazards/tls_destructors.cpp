// Hazard: malloc in the destructors of thread-local state.
// They run when the thread is already going away: a recorder whose own per-thread state has been torn down by then
// crashes, loses the calls, or writes into a slot that another thread has taken.
//
// One thread and then the main thread use a C++ thread_local `Local`; the thread also sets a pthread key.
//   local_constructed  malloc(100) in the constructor, freed in the destructor: 2 allocations (thread, main), 200
//                      bytes
//   local_destroyed    malloc(300) in the destructor, freed there: 2 allocations, 600 bytes, 2 temporary
//   key_value          malloc(50): 1 allocation, freed by the key's destructor
//   key_first_round    malloc(200) in the key's destructor, set as the new value: 1 allocation; so the destructor runs
//                      again
//   key_second_round   malloc(500) in that second round, left behind: 1 allocation, 500 leaked; the 200 are freed
//                      after it
// Order at the thread's end: local_destroyed 300 (temporary), free 100; key destructor: free 50, 200; then 500, free
// 200.
// Besides: libstdc++'s pool (72,704 bytes, kept), glibc's note of a thread_local destructor (32 bytes each, 2, freed),
// the thread's dtv (kept): allocations 7+1+2+1 = 11; frees 2+2+1+1+2 = 8; leaked blocks: 500, pool, dtv = 3.
#include "hazard.h"
#include <pthread.h>

static pthread_key_t key;

static FRAME void *local_constructed() { void *p = malloc(100); KEEP(p); return p; }
static FRAME void local_destroyed() {
    void *p = malloc(300);
    KEEP(p);
    free(p);
    STAY();
}
static FRAME void *key_value() { void *p = malloc(50); KEEP(p); return p; }
static FRAME void *key_first_round() { void *p = malloc(200); KEEP(p); return p; }
static FRAME void key_second_round() { void *p = malloc(500); KEEP(p); STAY(); }

struct Local {
    void *block = local_constructed();
    ~Local() {
        local_destroyed();
        free(block);
    }
};
static thread_local Local local;

static void key_destructor(void *value) {
    static int rounds;
    if (rounds++ == 0) {
        free(value);
        pthread_setspecific(key, key_first_round());
    } else {
        key_second_round();
        free(value);
    }
}

static void *worker(void *unused) {
    pthread_setspecific(key, key_value());
    KEEP(local.block);
    return unused;
}

int main() {
    pthread_t thread;
    EXPECT(pthread_key_create(&key, key_destructor) == 0, 10);
    EXPECT(pthread_create(&thread, nullptr, worker, nullptr) == 0, 11);
    pthread_join(thread, nullptr);
    KEEP(local.block);
    return 0;
}
