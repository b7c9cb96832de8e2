/* A bounded queue between two threads, by value: filling and emptying it allocates nothing. Who finds it full or
 * empty waits. */
#ifndef GATE_QUEUE_H
#define GATE_QUEUE_H

#include "gate.h"
#include <pthread.h>

enum { QUEUE_SLOTS = 8 };

struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t has_items, has_room;
    void *slots[QUEUE_SLOTS];
    unsigned first, count;
};

static inline void queue_init(struct queue *queue) {
    memset(queue, 0, sizeof *queue);
    GATE_EXPECT(pthread_mutex_init(&queue->mutex, NULL) == 0);
    GATE_EXPECT(pthread_cond_init(&queue->has_items, NULL) == 0);
    GATE_EXPECT(pthread_cond_init(&queue->has_room, NULL) == 0);
}

static inline void queue_push(struct queue *queue, void *item) {
    pthread_mutex_lock(&queue->mutex);
    while (queue->count == QUEUE_SLOTS) pthread_cond_wait(&queue->has_room, &queue->mutex);
    queue->slots[(queue->first + queue->count++) % QUEUE_SLOTS] = item;
    pthread_cond_signal(&queue->has_items);
    pthread_mutex_unlock(&queue->mutex);
}

static inline void *queue_pop(struct queue *queue) {
    void *item;
    pthread_mutex_lock(&queue->mutex);
    while (queue->count == 0) pthread_cond_wait(&queue->has_items, &queue->mutex);
    item = queue->slots[queue->first];
    queue->first = (queue->first + 1) % QUEUE_SLOTS;
    queue->count--;
    pthread_cond_signal(&queue->has_room);
    pthread_mutex_unlock(&queue->mutex);
    return item;
}

/* A thread that lives as long as the program: pthread_create allocates, and not the same in every run, so threads
 * begin before the region. */
static inline void thread_start(void *(*body)(void *), void *context) {
    pthread_t thread;
    GATE_EXPECT(pthread_create(&thread, NULL, body, context) == 0);
    GATE_EXPECT(pthread_detach(thread) == 0);
}
#endif
