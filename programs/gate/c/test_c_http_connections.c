/* One HTTP request on each of 200 connections; client and server in this process.
 *
 * 200 operations x (2 connections + client 7 + server 5, see http.h) = 2800.
 *
 * expect: allocations=2800 remaining=0 descriptors=0 ops=200
 */
#define _GNU_SOURCE
#include "http.h"

enum { OPS = 200 };

static struct queue served;

static void *serve(void *listener) {
    for (;;) {
        http_serve(socket_accepted(*(int *)listener));
        queue_push(&served, listener);
    }
    return NULL;
}

static void run(void *address) {
    int operation;
    GATE_SEED_FD(); /* SEED_FD */
    for (operation = 0; operation < OPS; operation++) {
        struct http_connection *connection = http_open(socket_connected(address));
        http_request(connection);
        socket_reset(connection->fd);
        free(connection);
        queue_pop(&served);
        GATE_SEED_ALLOC();         /* SEED_ALLOC */
        GATE_SEED_LEAK(operation); /* SEED_LEAK */
    }
}

int main(void) {
    struct sockaddr_in address;
    int listener = socket_listening(&address);
    queue_init(&served);
    thread_start(serve, &listener);
    gate_start(OPS);
    mallow_measure("http_connections", run, &address);
    return 0;
}
