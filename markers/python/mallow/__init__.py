"""Region markers for allocation tests in Python.

A region is a stretch of a program whose allocations, leaks and file descriptors `mallow check` counts:

    import mallow

    def encode_all():
        for message in MESSAGES:
            encode(message)

    mallow.ops(len(MESSAGES))
    mallow.measure("encode", encode_all)

The functions that do the work exist only while mallow runs the program. Without mallow a marker is a comparison
with None, and no other module than `gc`, `os` and `sys` is imported.

A test of any framework counts what a function allocates, and asserts on it:

    result, counts = mallow.count(lambda: encode(MESSAGES[0]))
    if counts is not None:
        assert counts.allocations <= 12

What is counted are the calls of malloc and its family. By itself Python serves objects of up to 512 bytes from arenas
of its own, so one call stands for hundreds of objects. So mallow sets PYTHONMALLOC=malloc, and each object that Python
creates is one allocation; a region tells how many blocks Python has in arenas nevertheless.
"""

import gc
import os
import sys

__all__ = ["region", "measure", "ops", "ops_wanted", "quiesce", "is_watching", "count", "Counts"]

_begin = _end = _ops = _quiesce = _tell = None


def _look_up():
    """Finds mallow's functions in this process; leaves them None when there are none."""
    global _begin, _end, _ops, _quiesce, _tell
    # mallow sets this for every program that it checks. Importing ctypes costs milliseconds and a thousand
    # objects, which a program without mallow should not pay for.
    if "MALLOW_RUNS" not in os.environ:
        return
    try:
        import ctypes

        # CDLL and not PyDLL: while mallow waits for other threads' frees, they may run.
        process = ctypes.CDLL(None)
        begin, end = process.mallow_region_begin, process.mallow_region_end
        ops, quiesce = process.mallow_ops, process.mallow_quiesce
        tell = process.mallow_tell
    except (ImportError, OSError, AttributeError):
        return
    # The functions with a name get no argument types: bytes are then passed on without an object made on the way.
    for function in (begin, end, ops, quiesce, tell):
        function.restype = None
    ops.argtypes = [ctypes.c_uint64]
    tell.argtypes = [ctypes.c_char_p, ctypes.c_uint64]
    _begin, _end, _ops, _quiesce, _tell = begin, end, ops, quiesce, tell


_look_up()


class region:
    """One run of the region `name`, for a `with` statement.

    Garbage is collected before the run begins and before it ends, so that what is only waiting for the collector is
    neither counted as a leak nor left to the next run. A region may be entered again, which is its next run.
    """

    __slots__ = ("_arguments",)

    def __init__(self, name):
        # Made here, with the tuple around it: a call with `*` takes the tuple as it is, whereas the interpreter would
        # make one for a plain call, and that tuple would be born in the region and still live at its end.
        self._arguments = (name.encode()[:127],)

    def __enter__(self):
        gc.collect()
        if _begin is not None:
            _begin(*self._arguments)
        return self

    def __exit__(self, kind, error, traceback):
        gc.collect()
        if _end is not None:
            _end(*self._arguments)
            # PyPy has no such function.
            if hasattr(sys, "getallocatedblocks"):
                _tell(b"hidden_blocks", sys.getallocatedblocks())


def _count(variable, otherwise):
    """The number in an environment variable if it is one below one million."""
    text = os.environ.get(variable, "")
    is_number = text.isascii() and text.isdigit() and len(text) <= 6
    return int(text) if is_number else otherwise


def measure(name, function):
    """Calls `function()` as often as mallow asks for, each time as one run of the region `name`.

    MALLOW_WARMUP times for warming up and MALLOW_RUNS times for counting; without these variables, as without
    mallow, once. Every call has to do the same work. What it returns is dropped inside the region.
    """
    runs = _count("MALLOW_WARMUP", 0) + _count("MALLOW_RUNS", 1)
    marked = region(name)
    for _ in range(runs):
        with marked:
            function()


def ops(ops_per_run):
    """Says how many operations one run consists of, so that figures are printed per operation as well."""
    if _ops is not None:
        _ops(ops_per_run)


def ops_wanted(usual):
    """How many operations a run should do: the number in MALLOW_OPS, else `usual`.

    mallow sets it when it derives the figure per operation from runs of different length.
    """
    return _count("MALLOW_OPS", usual)


def quiesce():
    """Waits, inside a region, until what it holds stands still. The end of a region does it by itself."""
    if _quiesce is not None:
        _quiesce()


def is_watching():
    """Whether mallow watches this program."""
    return _begin is not None


class Counts:
    """What a thread allocated in a count: its own calls of malloc and its family, exactly, whatever other threads did.

    allocations, bytes: successful calls, and what they asked for. reallocations: those that were realloc of a live
    block. temporary: blocks that the thread freed before it allocated again. peak_bytes: the most bytes of these
    blocks that lived at a time. remaining_blocks, remaining_bytes: what lives at the end.
    """

    __slots__ = (
        "allocations",
        "bytes",
        "reallocations",
        "temporary",
        "peak_bytes",
        "remaining_blocks",
        "remaining_bytes",
    )

    def __init__(self, values):
        for name, value in zip(self.__slots__, values):
            setattr(self, name, value)

    def __repr__(self):
        return "Counts(%s)" % ", ".join("%s=%d" % (name, getattr(self, name)) for name in self.__slots__)


# The functions that begin and end a count, looked up by the first one; None when there are none.
_counting = ()


def _counting_functions():
    """Finds mallow's counting functions, under whichever command of mallow that records. A program that counts nothing imports nothing."""
    global _counting
    if _counting != ():
        return _counting
    _counting = None
    if "MALLOW_SESSION" in os.environ:
        try:
            import ctypes

            process = ctypes.CDLL(None)
            begin, end = process.mallow_count_begin, process.mallow_count_end
        except (ImportError, OSError, AttributeError):
            return None
        begin.restype = None
        end.restype = ctypes.c_size_t
        _counting = (begin, end, ctypes.c_uint64 * len(Counts.__slots__), ctypes.byref)
    return _counting


def count(function):
    """Calls `function()` and counts what the calling thread allocates meanwhile. Returns its result and the `Counts`.

    Instead of counts there is None when nothing was counted: the program does not run under `mallow record`, `check` or
    `soak`, or not every call was recorded. What other threads allocate is not counted. Garbage is collected before the
    count begins and before it ends. Objects in Python's own arenas count where mallow sees them: `mallow check` does, and
    `mallow record --python-objects`.
    """
    functions = _counting_functions()
    if functions is None:
        return function(), None
    begin, end, make_values, reference = functions
    values = make_values()
    # Made here, for what is made later would be counted: a reference is passed on as it is, and so is a small number.
    arguments = (reference(values), len(values))
    gc.collect()
    begin()
    try:
        result = function()
    finally:
        gc.collect()
        written = end(*arguments)
    return result, Counts(values) if written == len(values) else None
