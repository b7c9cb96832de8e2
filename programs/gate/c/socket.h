/* TCP over the loopback interface for the tests that need it. Sockets allocate nothing in the program. */
#ifndef GATE_SOCKET_H
#define GATE_SOCKET_H

#include "gate.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

/* A socket of `type` on a free port of 127.0.0.1, whose address is put into `address`. */
static inline int socket_bound(int type, struct sockaddr_in *address) {
    socklen_t length = sizeof *address;
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    memset(address, 0, sizeof *address);
    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    GATE_EXPECT(fd >= 0);
    GATE_EXPECT(bind(fd, (struct sockaddr *)address, sizeof *address) == 0);
    GATE_EXPECT(getsockname(fd, (struct sockaddr *)address, &length) == 0);
    return fd;
}

static inline int socket_listening(struct sockaddr_in *address) {
    int fd = socket_bound(SOCK_STREAM, address);
    GATE_EXPECT(listen(fd, 16) == 0);
    return fd;
}

static inline void socket_without_delay(int fd) {
    int on = 1;
    GATE_EXPECT(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
}

static inline int socket_connected(const struct sockaddr_in *address) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    GATE_EXPECT(fd >= 0);
    GATE_EXPECT(connect(fd, (const struct sockaddr *)address, sizeof *address) == 0);
    socket_without_delay(fd);
    return fd;
}

static inline int socket_accepted(int listener) {
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    GATE_EXPECT(fd >= 0);
    socket_without_delay(fd);
    return fd;
}

/* Closes with RST instead of FIN, so that thousands of connections leave no port behind in TIME_WAIT. */
static inline void socket_reset(int fd) {
    struct linger linger = {1, 0};
    GATE_EXPECT(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger) == 0);
    GATE_EXPECT(close(fd) == 0);
}

static inline void socket_send(int fd, const void *bytes, size_t length) {
    const char *at = (const char *)bytes;
    while (length) {
        ssize_t sent = send(fd, at, length, MSG_NOSIGNAL);
        GATE_EXPECT(sent > 0);
        at += sent;
        length -= (size_t)sent;
    }
}

/* What has arrived, at most `length` bytes; 0 when the peer has closed or reset. */
static inline size_t socket_receive(int fd, void *bytes, size_t length) {
    ssize_t received;
    do received = recv(fd, bytes, length, 0);
    while (received < 0 && errno == EINTR);
    GATE_EXPECT(received >= 0 || errno == ECONNRESET);
    return received < 0 ? 0 : (size_t)received;
}
#endif
