"""http.server with a thread for each connection and HTTP/1.1 keep-alive: server.py --mode MODE --port N [--tls PEM].

clean  makes strings and drops them, some of them in a cycle that only the collector can free
leak   appends what it answered to a list of the module: a string of 60 characters (109 bytes) a request
buffers  appends 2,000 bytes, which come from malloc, to a list of the module
cache  functools.lru_cache of 4,000 answers of 200 characters: full after 4,000 requests
"""

import functools
import itertools
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HISTORY = []
NUMBERS = itertools.count(1)


def clean(number):
    parts = [str(number + n) for n in range(20)]
    parts.append(parts)


def leak(number):
    HISTORY.append("answer %053d" % number)  # LEAK python-leak


def buffers(number):
    HISTORY.append(bytearray(2000))  # LEAK python-buffers


@functools.lru_cache(maxsize=4000)
def answer_of(number):
    return "answer %0193d" % number


MODES = {"clean": clean, "leak": leak, "buffers": buffers, "cache": answer_of}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body leave in one piece: two would wait for each other's acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True
    work = staticmethod(clean)

    def do_GET(self):
        self.work(next(NUMBERS))
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")

    do_POST = do_GET

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512


def main():
    options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    Handler.work = staticmethod(MODES[options.get("--mode", "clean")])
    port = int(options.get("--port", os.environ.get("PORT", "3030")))
    server = Server((os.environ.get("HOST", "127.0.0.1"), port), Handler)
    if "--tls" in options:
        import ssl

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options["--tls"])
        server.socket = context.wrap_socket(server.socket, server_side=True)
    server.serve_forever()


main()
