/* Connects and resets, 200 times: no descriptor may be left at either end.
 *
 * 200 operations x 1 connection at each end = 400. Opened are 1 listener + 200 x 2, and all are closed.
 *
 * expect: allocations=400 remaining=0 descriptors=0 ops=200
 */
#define _GNU_SOURCE
#include "socket.h"

enum { OPS = 200 };

struct connection {
    int fd;
    char held[64];
};

static struct connection *connection_new(int fd) {
    struct connection *connection = gate_block(sizeof *connection);
    connection->fd = fd;
    return connection;
}

static void run(void *context) {
    struct sockaddr_in address;
    int listener = socket_listening(&address), operation;
    (void)context;
    GATE_SEED_FD(); /* SEED_FD */
    for (operation = 0; operation < OPS; operation++) {
        struct connection *client = connection_new(socket_connected(&address));
        struct connection *server = connection_new(socket_accepted(listener));
        socket_reset(client->fd);
        GATE_EXPECT(socket_receive(server->fd, server->held, sizeof server->held) == 0);
        close(server->fd);
        free(client);
        free(server);
        GATE_SEED_ALLOC();         /* SEED_ALLOC */
        GATE_SEED_LEAK(operation); /* SEED_LEAK */
    }
    close(listener);
}

int main(void) {
    gate_start(OPS);
    mallow_measure("rst_fd_leak", run, NULL);
    return 0;
}
