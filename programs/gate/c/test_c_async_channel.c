/* A producer on another thread writes messages into a channel with room for 8 and waits when it is full; the
 * consumer frees them.
 *
 * 1 channel + 1000 operations x 1 message = 1001.
 *
 * expect: allocations=1001 remaining=0 descriptors=0 ops=1000
 */
#include "queue.h"

enum { OPS = 1000 };

struct message {
    int number;
};

static struct queue channels;

static void *produce(void *context) {
    (void)context;
    for (;;) {
        struct queue *channel = queue_pop(&channels);
        int operation;
        for (operation = 0; operation < OPS; operation++) {
            struct message *message = gate_block(sizeof *message);
            message->number = operation;
            queue_push(channel, message);
            GATE_SEED_ALLOC();         /* SEED_ALLOC */
            GATE_SEED_LEAK(operation); /* SEED_LEAK */
        }
        queue_push(channel, NULL);
    }
    return NULL;
}

static void run(void *context) {
    struct queue *channel = gate_block(sizeof *channel);
    struct message *message;
    int received = 0;
    (void)context;
    queue_init(channel);
    GATE_SEED_FD(); /* SEED_FD */
    queue_push(&channels, channel);
    while ((message = queue_pop(channel))) {
        GATE_EXPECT(message->number == received);
        received++;
        free(message);
    }
    GATE_EXPECT(received == OPS);
    /* The producer may still hold the mutex that it is about to release. */
    pthread_mutex_lock(&channel->mutex);
    pthread_mutex_unlock(&channel->mutex);
    free(channel);
}

int main(void) {
    queue_init(&channels);
    thread_start(produce, NULL);
    gate_start(OPS);
    mallow_measure("async_channel", run, NULL);
    return 0;
}
