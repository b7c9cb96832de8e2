

def _mallow():
    """Loaded into Python by `mallow soak`: collects and reports metrics on mallow's request.

    Every exception is caught: the program must not notice this script. The thread is not one of `threading`'s, so that
    the program neither counts it nor waits for it.
    """
    import os

    name = os.environ.get("MALLOW_SOAK_SOCKET", "")
    if not name.startswith("@"):
        return
    import fcntl
    import gc
    import sys

    import _socket
    import _thread

    connection = {"fd": -1, "inode": None, "is_ours": False}

    def connect():
        socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        socket.connect("\0" + name[1:])
        try:
            # Far from the numbers that programs close one by one.
            fd = fcntl.fcntl(socket.fileno(), 1030, 200)  # F_DUPFD_CLOEXEC
            socket.close()
        except (OSError, ValueError):
            fd = socket.detach()
        connection["fd"] = fd
        connection["inode"] = os.fstat(fd).st_ino

    # The number may be reused by another file later.
    def is_ours():
        try:
            return os.fstat(connection["fd"]).st_ino == connection["inode"]
        except OSError:
            return False

    allocated_bytes = _mallow_allocated_bytes()

    def answer():
        gc.collect()
        figures = {"gc_objects": len(gc.get_objects()), "allocated_blocks": sys.getallocatedblocks()}
        for number, generation in enumerate(gc.get_stats()):
            for key, value in generation.items():
                figures["generation_%d_%s" % (number, key)] = value
        managed = allocated_bytes()
        # With PYTHONMALLOC=malloc there is no heap of Python's own.
        in_malloc = os.environ.get("PYTHONMALLOC", "").startswith("malloc")
        return '{"runtime":"python","pid":%d,"managed_bytes":%d,"objects":%d,"in_malloc":%s,"figures":{%s}}\n' % (
            os.getpid(),
            managed,
            figures["gc_objects"],
            "true" if in_malloc else "false",
            ",".join('"%s":%d' % item for item in figures.items()),
        )

    # The line that makes an object is kept from the first snapshot on: what is made between two of them is what a leak
    # leaves behind, and nothing was slower before.
    def snapshot(path):
        def work(frames):
            why = "null"
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
                with open(os.open(path, flags, 0o600), "wb") as file:
                    _mallow_heap(file.write, frames, False)
            except BaseException as fault:
                why = '"%s"' % type(fault).__name__
            os.write(connection["fd"], b'{"snapshot":%s}\n' % why.encode())

        import tracemalloc

        connection["is_ours"] = True
        try:
            _mallow_in_a_child(work)
        finally:
            connection["is_ours"] = False
        if not tracemalloc.is_tracing():
            tracemalloc.start(1)

    def obey(line):
        if not line.startswith(b"snapshot "):
            os.write(connection["fd"], answer().encode())
            return
        try:
            snapshot(os.fsdecode(line[len(b"snapshot ") :]))
        except BaseException as fault:
            os.write(connection["fd"], b'{"snapshot":"%s"}\n' % type(fault).__name__.encode())

    def serve():
        unread = b""
        try:
            connect()
            while True:
                try:
                    asked = os.read(connection["fd"], 4096)
                except OSError:
                    asked = None
                if not is_ours():
                    connect()
                elif asked == b"":
                    return
                unread += asked or b""
                while b"\n" in unread:
                    line, unread = unread.split(b"\n", 1)
                    obey(line)
        except BaseException:
            pass

    def start():
        _thread.start_new_thread(serve, ())

    # A forked child has neither the thread nor a connection of its own.
    def restart():
        if connection["is_ours"]:
            return
        try:
            if is_ours():
                os.close(connection["fd"])
            start()
        except BaseException:
            pass

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=restart)
    start()


def _mallow_allocated_bytes():
    """Returns a function that tells the bytes of all blocks of Python's own allocator.

    Only that allocator's report has them, a text written to a stream. Where it cannot be had, blocks are taken for 64
    bytes each.
    """
    import sys

    try:
        import ctypes

        report = ctypes.pythonapi._PyObject_DebugMallocStats
        report.argtypes = [ctypes.c_void_p]
        # Called with the interpreter's lock held, so that no thread waits for it with a half-written text.
        lib = ctypes.PyDLL(None)
        open_stream, close_stream, free = lib.open_memstream, lib.fclose, lib.free
        open_stream.restype = ctypes.c_void_p
        open_stream.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        close_stream.argtypes = free.argtypes = [ctypes.c_void_p]
    except BaseException:
        return lambda: sys.getallocatedblocks() * 64

    def allocated_bytes():
        text, size = ctypes.c_void_p(), ctypes.c_size_t()
        stream = open_stream(ctypes.byref(text), ctypes.byref(size))
        if not stream:
            return sys.getallocatedblocks() * 64
        report(stream)
        close_stream(stream)
        lines = ctypes.string_at(text.value, size.value).splitlines()
        free(text)
        for line in lines:
            if line.startswith(b"# bytes in allocated blocks"):
                return int(line.split(b"=")[1].replace(b",", b""))
        return sys.getallocatedblocks() * 64

    return allocated_bytes


try:
    _mallow()
except BaseException:
    pass


_mallow_chain()
