/* One thread, poll, HTTP/1.1 with keep-alive: server MODE-option port-option, or PORT from the environment.
 *
 * clean  allocates and frees
 * leak   loses one block of 16 bytes a request, leak256 one of 256
 * cache  keeps the last 4,000 answers of 256 bytes: full after 4,000 requests
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CLIENTS_MAX = 1024, HEAD_MAX = 16384, CACHED_MAX = 4000, CACHED_BYTES = 256 };

struct client {
    size_t used;
    size_t body_left;
    char head[HEAD_MAX];
};

static struct pollfd polled[CLIENTS_MAX + 1];
static struct client *clients[CLIENTS_MAX + 1];
static int polled_count;
static const char *mode = "clean";
static unsigned long requests;

static __attribute__((noinline)) void lose(size_t bytes)
{
    char *lost = malloc(bytes); /* LEAK c-leak */
    if (lost)
        lost[0] = 1;
    __asm__ volatile("" : : "r"(lost) : "memory");
}

static char *cached[CACHED_MAX];

static __attribute__((noinline)) void remember(void)
{
    char **slot = &cached[requests % CACHED_MAX];
    free(*slot);
    *slot = malloc(CACHED_BYTES); /* FILLS */
    if (*slot)
        memset(*slot, 1, CACHED_BYTES);
}

static __attribute__((noinline)) void clean(void)
{
    char *blocks[8];
    for (int i = 0; i < 8; i++)
        blocks[i] = malloc((size_t)(i + 1) * (requests % 100 + 1));
    __asm__ volatile("" : : "r"(blocks) : "memory");
    for (int i = 0; i < 8; i++)
        free(blocks[i]);
}

static void work(void)
{
    requests++;
    if (!strcmp(mode, "leak"))
        lose(16);
    else if (!strcmp(mode, "leak256"))
        lose(256);
    else if (!strcmp(mode, "cache"))
        remember();
    else
        clean();
}

static void end_client(int at)
{
    close(polled[at].fd);
    free(clients[at]);
    polled_count--;
    polled[at] = polled[polled_count];
    clients[at] = clients[polled_count];
}

static void accept_client(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    struct client *client = polled_count <= CLIENTS_MAX ? calloc(1, sizeof *client) : NULL;
    if (!client) {
        close(fd);
        return;
    }
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    polled[polled_count] = (struct pollfd){.fd = fd, .events = POLLIN};
    clients[polled_count++] = client;
}

static size_t body_length(const char *head)
{
    const char *field = strcasestr(head, "\r\ncontent-length:");
    return field ? strtoul(field + 17, NULL, 10) : 0;
}

/* Answers every complete request; 0 when the connection is to end. */
static int answer_all(int fd, struct client *client)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n";
    for (;;) {
        size_t skipped = client->body_left < client->used ? client->body_left : client->used;
        memmove(client->head, client->head + skipped, client->used - skipped);
        client->used -= skipped;
        client->body_left -= skipped;
        client->head[client->used] = 0;
        char *end = client->body_left ? NULL : strstr(client->head, "\r\n\r\n");
        if (!end)
            return client->used < HEAD_MAX - 1;
        end[2] = 0;
        client->body_left = body_length(client->head);
        int is_last = strcasestr(client->head, "\r\nconnection: close") != NULL;
        size_t head_bytes = (size_t)(end + 4 - client->head);
        memmove(client->head, end + 4, client->used - head_bytes);
        client->used -= head_bytes;
        work();
        if (write(fd, answer, sizeof answer - 1) < 0 || is_last)
            return 0;
    }
}

static int serve_client(int at)
{
    struct client *client = clients[at];
    ssize_t got = read(polled[at].fd, client->head + client->used, HEAD_MAX - 1 - client->used);
    if (got <= 0)
        return got < 0 && errno == EINTR;
    client->used += (size_t)got;
    return answer_all(polled[at].fd, client);
}

static int listen_on(const char *host, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    inet_pton(AF_INET, host, &address.sin_addr);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 512)) {
        fprintf(stderr, "server: %s:%d: %s\n", host, port, strerror(errno));
        exit(2);
    }
    return fd;
}

int main(int count, char **words)
{
    const char *host = getenv("HOST") ? getenv("HOST") : "127.0.0.1";
    const char *port = getenv("PORT") ? getenv("PORT") : "3030";
    for (int i = 1; i + 1 < count; i += 2) {
        if (!strcmp(words[i], "--mode"))
            mode = words[i + 1];
        else if (!strcmp(words[i], "--port"))
            port = words[i + 1];
    }
    signal(SIGPIPE, SIG_IGN);
    polled[0] = (struct pollfd){.fd = listen_on(host, atoi(port)), .events = POLLIN};
    polled_count = 1;
    while (poll(polled, (nfds_t)polled_count, -1) >= 0 || errno == EINTR) {
        /* From the end, because an ended client's place is taken by the last. */
        for (int at = polled_count - 1; at > 0; at--)
            if (polled[at].revents && !serve_client(at))
                end_client(at);
        if (polled[0].revents)
            accept_client(polled[0].fd);
    }
    return 1;
}
