"""Sessions behind a login, http.server with a thread for each connection: login.py --mode MODE --port N.

POST /login    a form with user and password: answers with JSON {"data": {"token": …}} and sets the cookie "session"
GET /account   wants the cookie, and the token as `Authorization: Bearer`; answers with a page that has a field "csrf"
POST /logout   wants the cookie, and "csrf" in a form; ends the session
GET /stats     how many requests were refused, how many logins there were, and how many sessions are open

clean  forgets a session when it ends
leak   keeps 2,000 bytes of each login: they come from malloc
mute   answers a login without a token
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from urllib.parse import parse_qs

SESSIONS = {}
AUDIT = []
NUMBERS = count(1)
SEEN = {"logins": 0, "refused": 0}


def remember_login():
    AUDIT.append(bytearray(2000))  # LEAK login


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body leave in one piece.
    wbufsize = -1
    disable_nagle_algorithm = True
    mode = "clean"

    def do_POST(self):
        form = parse_qs(self.rfile.read(int(self.headers.get("Content-Length", 0))).decode())
        if self.path == "/login":
            self.login(form)
        elif self.path == "/logout":
            session = self.session()
            if session is None or form.get("csrf") != [session["csrf"]]:
                return self.refuse()
            del SESSIONS[self.cookie()]
            self.answer(200, "bye\n", [("Set-Cookie", "session=; Path=/; Max-Age=0")])
        else:
            self.answer(404, "nothing here\n")

    def do_GET(self):
        if self.path == "/stats":
            return self.answer(200, json.dumps(SEEN | {"open": len(SESSIONS)}))
        if self.path != "/account":
            return self.answer(404, "nothing here\n")
        session = self.session()
        if session is None or self.headers.get("Authorization") != "Bearer " + session["token"]:
            return self.refuse()
        self.answer(200, '<form><input name="csrf" value="%s"></form>\n' % session["csrf"])

    def login(self, form):
        if form.get("password") != ["p&q =ü"] or not form.get("user", [""])[0].startswith("anna"):
            return self.refuse()
        number = next(NUMBERS)
        SEEN["logins"] += 1
        if self.mode == "leak":
            remember_login()
        key, token = "s%d" % number, "t%d" % (number * 7)
        SESSIONS[key] = {"token": token, "csrf": "c%d" % (number * 3)}
        told = {} if self.mode == "mute" else {"token": token}
        self.answer(200, json.dumps({"data": told}), [("Set-Cookie", "session=%s; Path=/; HttpOnly" % key)])

    def cookie(self):
        for pair in self.headers.get("Cookie", "").split("; "):
            name, _, value = pair.partition("=")
            if name == "session":
                return value
        return None

    def session(self):
        return SESSIONS.get(self.cookie())

    def refuse(self):
        SEEN["refused"] += 1
        self.answer(403, "log in first\n")

    def answer(self, status, text, headers=()):
        body = text.encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512


def main():
    options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    Handler.mode = options.get("--mode", "clean")
    port = int(options.get("--port", os.environ.get("PORT", "3030")))
    Server((os.environ.get("HOST", "127.0.0.1"), port), Handler).serve_forever()


main()
