"""Applications for servers that start workers of their own: gunicorn (WSGI) and uvicorn (ASGI).

gunicorn application:wsgi_MODE --workers 3 --max-requests 400     workers that are replaced
uvicorn application:asgi_MODE --workers 2                         workers that stay

clean  fills a list of 100 answers in each worker, and makes strings that it drops
leak   appends 600 bytes to a list of the module for each request
"""

KEPT = []
HEAD = [("Content-Type", "text/plain"), ("Content-Length", "3")]


def clean():
    if len(KEPT) < 100:
        KEPT.append(bytearray(600))
    return [str(number) for number in range(20)]


def leak():
    KEPT.append(bytearray(600))  # LEAK application


def wsgi(work):
    def application(environ, start_response):
        work()
        start_response("200 OK", HEAD)
        return [b"ok\n"]

    return application


def asgi(work):
    async def application(scope, receive, send):
        # A worker's start and end: who raises an exception wants none of them.
        if scope["type"] != "http":
            raise NotImplementedError(scope["type"])
        work()
        head = [(name.lower().encode(), value.encode()) for name, value in HEAD]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": b"ok\n"})

    return application


wsgi_clean, wsgi_leak = wsgi(clean), wsgi(leak)
asgi_clean, asgi_leak = asgi(clean), asgi(leak)
