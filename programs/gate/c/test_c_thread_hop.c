/* Posts 1000 jobs to another thread and waits until all have run. A job is a number, the queue's slots are part of it.
 *
 * 1 queue that brings the answers back + 1000 operations x 0 = 1.
 *
 * expect: allocations=1 remaining=0 descriptors=0 ops=1000
 */
#include "queue.h"

enum { OPS = 1000 };

static struct queue jobs;

struct job {
    struct queue *answers;
    long sum;
};

static void *work(void *context) {
    (void)context;
    for (;;) {
        struct job *job = queue_pop(&jobs);
        job->sum++;
        if (job->sum == OPS) queue_push(job->answers, job);
    }
    return NULL;
}

static void run(void *context) {
    struct queue *answers = gate_block(sizeof *answers);
    struct job job = {answers, 0};
    int operation;
    (void)context;
    queue_init(answers);
    GATE_SEED_FD(); /* SEED_FD */
    for (operation = 0; operation < OPS; operation++) {
        queue_push(&jobs, &job);
        GATE_SEED_ALLOC();         /* SEED_ALLOC */
        GATE_SEED_LEAK(operation); /* SEED_LEAK */
    }
    GATE_EXPECT(queue_pop(answers) == &job && job.sum == OPS);
    /* The other thread may still hold the mutex that it is about to release. */
    pthread_mutex_lock(&answers->mutex);
    pthread_mutex_unlock(&answers->mutex);
    free(answers);
}

int main(void) {
    queue_init(&jobs);
    thread_start(work, NULL);
    gate_start(OPS);
    mallow_measure("thread_hop", run, NULL);
    return 0;
}
