/* A datagram to a server and back, 1000 times, from one thread.
 *
 * 1000 operations x 1 envelope at each end = 2000.
 *
 * expect: allocations=2000 remaining=0 descriptors=0 ops=1000
 */
#define _GNU_SOURCE
#include "socket.h"

enum { OPS = 1000 };

struct envelope {
    struct sockaddr_in from;
    size_t length;
    char payload[64];
};

static struct envelope *receive(int fd) {
    struct envelope *envelope = gate_block(sizeof *envelope);
    socklen_t length = sizeof envelope->from;
    ssize_t received = recvfrom(fd, envelope->payload, sizeof envelope->payload, 0,
                                (struct sockaddr *)&envelope->from, &length);
    GATE_EXPECT(received > 0);
    envelope->length = (size_t)received;
    return envelope;
}

static void send_to(int fd, const void *bytes, size_t length, const struct sockaddr_in *address) {
    ssize_t sent = sendto(fd, bytes, length, 0, (const struct sockaddr *)address, sizeof *address);
    GATE_EXPECT(sent == (ssize_t)length);
}

static void run(void *context) {
    struct sockaddr_in server_address, client_address;
    int server = socket_bound(SOCK_DGRAM, &server_address), client = socket_bound(SOCK_DGRAM, &client_address);
    int operation;
    (void)context;
    GATE_SEED_FD(); /* SEED_FD */
    for (operation = 0; operation < OPS; operation++) {
        struct envelope *request, *answer;
        send_to(client, "ping", 4, &server_address);
        request = receive(server);
        send_to(server, request->payload, request->length, &request->from);
        answer = receive(client);
        GATE_EXPECT(answer->length == 4 && memcmp(answer->payload, "ping", 4) == 0);
        free(request);
        free(answer);
        GATE_SEED_ALLOC();         /* SEED_ALLOC */
        GATE_SEED_LEAK(operation); /* SEED_LEAK */
    }
    close(server);
    close(client);
}

int main(void) {
    gate_start(OPS);
    mallow_measure("udp_echo", run, NULL);
    return 0;
}
