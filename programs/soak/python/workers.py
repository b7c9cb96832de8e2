"""A server of worker processes that are replaced, as gunicorn's are with --max-requests: workers.py --mode MODE --port N [--life N].

Two workers accept from one socket. Each ends after so many requests, and another one takes its place.

clean  fills a list of 100 answers in each worker, and makes strings that it drops
leak   appends 600 bytes to a list of the module for each request
"""

import os
import socket
import sys

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n"
WORKERS = 2
KEPT = []


def clean(number):
    if number < 100:
        KEPT.append(bytearray(600))
    return [str(number + n) for n in range(20)]


def leak(number):
    KEPT.append(bytearray(600))  # LEAK workers


MODES = {"clean": clean, "leak": leak}


def serve(listener, work, life):
    for number in range(life):
        connection, _ = listener.accept()
        asked = b""
        while b"\r\n\r\n" not in asked:
            more = connection.recv(65536)
            if not more:
                break
            asked += more
        work(number)
        connection.sendall(HEAD)
        connection.close()


def main(words):
    options = dict(zip(words[::2], words[1::2]))
    work, life = MODES[options["--mode"]], int(options.get("--life", 400))
    listener = socket.create_server(("127.0.0.1", int(options["--port"])), backlog=128)
    living = 0
    while True:
        while living < WORKERS:
            if os.fork() == 0:
                serve(listener, work, life)
                os._exit(0)
            living += 1
        os.wait()
        living -= 1


if __name__ == "__main__":
    main(sys.argv[1:])
