/* A thread of a pool reads a file in chunks of one byte and hands each to the loop that asked for it.
 *
 * 1 reader + 1000 operations x 1 chunk = 1001. The file is opened and closed in each run.
 *
 * expect: allocations=1001 remaining=0 descriptors=0 ops=1000
 */
#define _GNU_SOURCE
#include "queue.h"
#include <sys/mman.h>

enum { OPS = 1000 };

struct chunk {
    char byte;
};

struct reader {
    int fd;
    struct queue chunks;
};

static struct queue readers;

static void *read_files(void *context) {
    (void)context;
    for (;;) {
        struct reader *reader = queue_pop(&readers);
        int operation;
        for (operation = 0; operation < OPS; operation++) {
            struct chunk *chunk = gate_block(sizeof *chunk);
            GATE_EXPECT(read(reader->fd, &chunk->byte, 1) == 1);
            queue_push(&reader->chunks, chunk);
            GATE_SEED_ALLOC();         /* SEED_ALLOC */
            GATE_SEED_LEAK(operation); /* SEED_LEAK */
        }
        queue_push(&reader->chunks, NULL);
    }
    return NULL;
}

static void run(void *path) {
    struct reader *reader = gate_block(sizeof *reader);
    struct chunk *chunk;
    int received = 0;
    queue_init(&reader->chunks);
    reader->fd = open(path, O_RDONLY | O_CLOEXEC);
    GATE_EXPECT(reader->fd >= 0);
    GATE_SEED_FD(); /* SEED_FD */
    queue_push(&readers, reader);
    while ((chunk = queue_pop(&reader->chunks))) {
        GATE_EXPECT(chunk->byte == (char)('a' + received % 26));
        received++;
        free(chunk);
    }
    GATE_EXPECT(received == OPS);
    close(reader->fd);
    /* The other thread may still hold the mutex that it is about to release. */
    pthread_mutex_lock(&reader->chunks.mutex);
    pthread_mutex_unlock(&reader->chunks.mutex);
    free(reader);
}

/* A file in memory, and the path by which it can be opened again. */
static const char *file_of_letters(void) {
    static char path[] = "/proc/self/fd/0";
    int fd = memfd_create("letters", MFD_CLOEXEC), i;
    for (i = 0; i < OPS; i++) {
        char byte = (char)('a' + i % 26);
        GATE_EXPECT(write(fd, &byte, 1) == 1);
    }
    GATE_EXPECT(fd >= 0 && fd < 10);
    path[sizeof path - 2] = (char)('0' + fd);
    return path;
}

int main(void) {
    char path[32];
    strcpy(path, file_of_letters());
    queue_init(&readers);
    thread_start(read_files, NULL);
    gate_start(OPS);
    mallow_measure("file_chunks", run, path);
    return 0;
}
