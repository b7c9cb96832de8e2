"""500 HTTP requests over one connection that is kept alive; client and server take turns in this thread.

With PYTHONMALLOC=malloc, which mallow sets, each object is one allocation.
Server, per request: 1 message, 1 head, 1 array of the list + 4 lines = 7; the empty body exists already.
Client, per response: 1 message, 1 head, 1 array of the list + 4 lines, 1 body = 8.
500 operations x 15 = 7500. From the interpreter's stock, which is empty when the region begins and then serves all operations:
2 lists, and 1 tuple of each length from 1 to 3 (arguments, results): + 5. The iterator over the operations: + 1.

expect: allocations=7506 remaining=0 descriptors=0 ops=500
"""

import os
import socket

import gate
import mallow

OPERATIONS = gate.operations(500)
REQUEST = b"GET /1 HTTP/1.1\r\nhost: localhost\r\nuser-agent: gate\r\naccept: */*\r\n\r\n"
RESPONSE = b"HTTP/1.1 200 OK\r\nserver: gate\r\nconnection: keep-alive\r\ncontent-length: 100\r\n\r\n" + b"b" * 100
LISTENER = socket.create_server(("127.0.0.1", 0))
# The connection lasts for all runs: code that runs once per run is still being specialised by the interpreter in the first
# ten, and allocates a little less each time.
CLIENT = socket.create_connection(LISTENER.getsockname())
SERVER, _ = LISTENER.accept()


def receive(connection, length):
    """Receives a message of this length and returns its first line with its headers, and its body."""
    message = connection.recv(length, socket.MSG_WAITALL)
    head, _, body = message.partition(b"\r\n\r\n")
    return head.split(b"\r\n"), body


def run():
    if gate.SEED_FD:
        os.open("/dev/null", os.O_RDONLY)  # SEED_FD
    for operation in OPERATIONS:
        CLIENT.sendall(REQUEST)
        lines, body = receive(SERVER, len(REQUEST))
        assert len(lines) == 4 and not body
        SERVER.sendall(RESPONSE)
        lines, body = receive(CLIENT, len(RESPONSE))
        assert len(lines) == 4 and len(body) == 100
        if gate.SEED_ALLOC:
            object()  # SEED_ALLOC
        if gate.SEED_LEAK and operation % 100 == 0:
            gate.leaked[next(gate.places)] = object()  # SEED_LEAK


mallow.ops(len(OPERATIONS))
mallow.measure("http_keepalive", run)
