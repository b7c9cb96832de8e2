/* 1000 HTTP requests over one connection that is kept alive; client and server in this process.
 *
 * 2 connections + 1000 operations x (client 7 + server 5, see http.h) = 12002.
 *
 * expect: allocations=12002 remaining=0 descriptors=0 ops=1000
 */
#define _GNU_SOURCE
#include "http.h"

enum { OPS = 1000 };

static struct queue served;

static void *serve(void *listener) {
    for (;;) {
        http_serve(socket_accepted(*(int *)listener));
        queue_push(&served, listener);
    }
    return NULL;
}

static void run(void *address) {
    struct http_connection *connection = http_open(socket_connected(address));
    int operation;
    GATE_SEED_FD(); /* SEED_FD */
    for (operation = 0; operation < OPS; operation++) {
        http_request(connection);
        GATE_SEED_ALLOC();         /* SEED_ALLOC */
        GATE_SEED_LEAK(operation); /* SEED_LEAK */
    }
    socket_reset(connection->fd);
    free(connection);
    queue_pop(&served);
}

int main(void) {
    struct sockaddr_in address;
    int listener = socket_listening(&address);
    queue_init(&served);
    thread_start(serve, &listener);
    gate_start(OPS);
    mallow_measure("http_keepalive", run, &address);
    return 0;
}
