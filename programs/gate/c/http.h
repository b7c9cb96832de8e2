/* A small HTTP/1.1 client and server, both in this process: what a request allocates is written beside each part.
 *
 * Client, per request: 1 request text, 1 response, 4 headers, 1 body = 7.
 * Server, per request: 1 request, 3 headers, 1 response text = 5.
 * Per connection: 1 at each end = 2. */
#ifndef GATE_HTTP_H
#define GATE_HTTP_H

#include "queue.h"
#include "socket.h"
#include <stdio.h>

enum { HTTP_ROOM = 1024, HTTP_BODY = 100 };

struct http_header {
    struct http_header *next;
    char line[];
};

struct http_connection {
    int fd;
    size_t held;
    char bytes[HTTP_ROOM];
};

/* A message that was received: its headers, and the body if it has one. */
struct http_message {
    struct http_header *headers;
    size_t header_count, body_length;
    char *body;
};

static inline struct http_connection *http_open(int fd) {
    struct http_connection *connection = gate_block(sizeof *connection);
    connection->fd = fd;
    connection->held = 0;
    return connection;
}

/* Length of the head with its empty line, once all of it has arrived; 0 when the peer has closed. */
static inline size_t http_head(struct http_connection *connection) {
    for (;;) {
        char *end;
        size_t received;
        connection->bytes[connection->held] = 0;
        end = strstr(connection->bytes, "\r\n\r\n");
        if (end) return (size_t)(end - connection->bytes) + 4;
        received = socket_receive(connection->fd, connection->bytes + connection->held,
                                  HTTP_ROOM - 1 - connection->held);
        if (received == 0) return 0;
        connection->held += received;
    }
}

static inline void http_add_header(struct http_message *message, const char *line, size_t length) {
    struct http_header *header = gate_block(sizeof *header + length + 1);
    memcpy(header->line, line, length);
    header->line[length] = 0;
    header->next = message->headers;
    message->headers = header;
    message->header_count++;
    if (strncmp(header->line, "content-length: ", 16) == 0) message->body_length = strtoul(header->line + 16, NULL, 10);
}

static inline void http_consume(struct http_connection *connection, size_t length) {
    connection->held -= length;
    memmove(connection->bytes, connection->bytes + length, connection->held);
}

static inline struct http_message *http_receive(struct http_connection *connection) {
    size_t head = http_head(connection);
    char *at = connection->bytes, *line_end;
    struct http_message *message;
    if (head == 0) return NULL;
    message = gate_block(sizeof *message);
    memset(message, 0, sizeof *message);
    at = strstr(at, "\r\n") + 2;
    for (; (line_end = strstr(at, "\r\n")) != at; at = line_end + 2) http_add_header(message, at, (size_t)(line_end - at));
    http_consume(connection, head);
    if (message->body_length == 0) return message;
    while (connection->held < message->body_length) {
        size_t received = socket_receive(connection->fd, connection->bytes + connection->held,
                                         HTTP_ROOM - 1 - connection->held);
        GATE_EXPECT(received > 0);
        connection->held += received;
    }
    message->body = gate_block(message->body_length);
    memcpy(message->body, connection->bytes, message->body_length);
    http_consume(connection, message->body_length);
    return message;
}

static inline void http_free(struct http_message *message) {
    while (message->headers) {
        struct http_header *header = message->headers;
        message->headers = header->next;
        free(header);
    }
    free(message->body);
    free(message);
}

/* Sends a text with the bytes `body` behind it, built in one block. */
static inline void http_send(struct http_connection *connection, const char *head, const char *body, size_t length) {
    size_t head_length = strlen(head);
    char *text = gate_block(head_length + length);
    memcpy(text, head, head_length);
    memcpy(text + head_length, body, length);
    socket_send(connection->fd, text, head_length + length);
    free(text);
}

static inline void http_request(struct http_connection *connection) {
    struct http_message *response;
    http_send(connection, "GET /1 HTTP/1.1\r\nhost: localhost\r\nuser-agent: gate\r\naccept: */*\r\n\r\n", "", 0);
    response = http_receive(connection);
    GATE_EXPECT(response && response->header_count == 4 && response->body_length == HTTP_BODY);
    http_free(response);
}

/* Answers what comes on a connection until it ends. */
static inline void http_serve(int fd) {
    struct http_connection *connection = http_open(fd);
    struct http_message *request;
    char body[HTTP_BODY];
    memset(body, 'b', sizeof body);
    while ((request = http_receive(connection))) {
        GATE_EXPECT(request->header_count == 3 && request->body == NULL);
        http_send(connection,
                  "HTTP/1.1 200 OK\r\nserver: gate\r\ncontent-type: text/plain\r\nx-request: 1\r\ncontent-length: 100\r\n\r\n",
                  body, sizeof body);
        http_free(request);
    }
    close(fd);
    free(connection);
}
#endif
