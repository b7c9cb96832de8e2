"""Loaded into Python by `mallow soak`: collects, and tells figures, whenever mallow asks.

Every fault is swallowed: the program must not notice that this is here. The thread is none of `threading`'s, so that
nobody counts it or waits for it.
"""


def _mallow():
    import os

    name = os.environ.get("MALLOW_SOAK_SOCKET", "")
    if not name.startswith("@"):
        return
    import fcntl
    import gc
    import sys

    import _socket
    import _thread

    connection = {"fd": -1, "inode": None}

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

    # The same number may be somebody else's later.
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

    def serve():
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
                for _ in range((asked or b"").count(b"\n")):
                    os.write(connection["fd"], answer().encode())
        except BaseException:
            pass

    def start():
        _thread.start_new_thread(serve, ())

    # A forked child has neither the thread nor a connection of its own.
    def restart():
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
        # Called with the interpreter's lock held, so that nobody waits for it with a half-written text.
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


def _mallow_chain():
    """Runs the `sitecustomize` that would have run if this one were not in the way; its faults are its own."""
    import os
    import sys

    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as fault:
        if getattr(fault, "name", "sitecustomize") != "sitecustomize":
            raise
        if ours is not None:
            sys.modules["sitecustomize"] = ours


_mallow_chain()
