/* One byte there and back, 1000 times over one TCP connection.
 *
 * 1 connection at each end = 2, + 1000 operations x 0 = 2.
 *
 * expect: allocations=2 remaining=0 descriptors=0 ops=1000
 */
#define _GNU_SOURCE
#include "queue.h"
#include "socket.h"

enum { OPS = 1000 };

struct connection {
    int fd;
    char byte;
};

static struct queue closed;

static void *pong(void *listener) {
    for (;;) {
        /* The block is born after the connection, or it would belong to the run before. */
        int fd = socket_accepted(*(int *)listener);
        struct connection *connection = gate_block(sizeof *connection);
        connection->fd = fd;
        while (socket_receive(connection->fd, &connection->byte, 1)) socket_send(connection->fd, &connection->byte, 1);
        close(connection->fd);
        free(connection);
        queue_push(&closed, listener);
    }
    return NULL;
}

static void run(void *address) {
    struct connection *connection = gate_block(sizeof *connection);
    int operation;
    connection->fd = socket_connected(address);
    GATE_SEED_FD(); /* SEED_FD */
    for (operation = 0; operation < OPS; operation++) {
        connection->byte = (char)operation;
        socket_send(connection->fd, &connection->byte, 1);
        GATE_EXPECT(socket_receive(connection->fd, &connection->byte, 1) == 1);
        GATE_EXPECT(connection->byte == (char)operation);
        GATE_SEED_ALLOC();         /* SEED_ALLOC */
        GATE_SEED_LEAK(operation); /* SEED_LEAK */
    }
    socket_reset(connection->fd);
    free(connection);
    queue_pop(&closed);
}

int main(void) {
    struct sockaddr_in address;
    int listener = socket_listening(&address);
    queue_init(&closed);
    thread_start(pong, &listener);
    gate_start(OPS);
    mallow_measure("ping_pong", run, &address);
    return 0;
}
