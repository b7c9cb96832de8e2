"""Every kind of frame that Python has, each with a line that allocates one block for each time it is reached.

`bytes(n)` is one block of n + 33 bytes: above 512 bytes Python's own allocator passes a request on to malloc. The comment behind
such a line says how often it is reached and how many blocks of how many bytes that is. Nothing else on these lines is large.

Four equal things are sorted by three comparisons. Of five nested calls the innermost raises and catches a ValueError, the others see the
KeyError that it raises then, which only their `finally` takes notice of.
"""

import atexit
import asyncio
import functools
import gc
import os
import re
import signal
import sys
import threading
import weakref

ROUNDS = 3


def plain():
    return bytes(1001)  # 3 x 1034


def caller(function):
    return function(
        bytes(1002),  # 3 x 1035
        bytes(1003),  # 3 x 1036
    )


class Thing:
    body = bytes(1004)  # 1 x 1037

    def __init__(self):
        self.kept = bytes(1005)  # 15 x 1038

    def __lt__(self, other):
        return len(bytes(1006)) < 0  # 9 x 1039

    def __getattr__(self, name):
        return bytes(1007)  # 3 x 1040

    def __del__(self):
        bytes(1008)  # 15 x 1041

    def __enter__(self):
        bytes(1009)  # 3 x 1042

    def __exit__(self, *args):
        bytes(1010)  # 3 x 1043

    @property
    def shown(self):
        return bytes(1011)  # 3 x 1044


def numbers():
    for _ in range(4):
        yield bytes(1012)  # 15 x 1045


def delegating():
    yield from numbers()
    try:
        yield bytes(1013)  # 3 x 1046
    finally:
        bytes(1014)  # 3 x 1047


def failing(depth):
    try:
        if depth:
            failing(depth - 1)
        raise ValueError(bytes(1015))  # 3 x 1048
    except ValueError as error:
        bytes(1016)  # 3 x 1049
        raise KeyError from error
    finally:
        bytes(1017)  # 15 x 1050


def recursion(depth):
    kept = bytes(1018)  # 603 x 1051
    return recursion(depth - 1) if depth else kept


def decorated(function):
    @functools.wraps(function)
    def wrapper():
        bytes(1019)  # 3 x 1052
        return function()

    return wrapper


@decorated
def inner():
    def closure():
        return bytes(1020)  # 3 x 1053

    return closure()


async def sleeper():
    await asyncio.sleep(0)
    return bytes(1021)  # 30 x 1054


async def ticks():
    for _ in range(2):
        await asyncio.sleep(0)
        yield bytes(1022)  # 6 x 1055


async def together():
    await asyncio.gather(*[sleeper() for _ in range(10)])
    async for _ in ticks():
        bytes(1023)  # 6 x 1056


def traced():
    def watch(frame, event, argument):
        if event == "call":
            bytes(1024)  # 3 x 1057
        return None

    def profile(frame, event, argument):
        if event == "call":
            bytes(1025)  # 3 x 1058

    def called():
        return bytes(1026)  # 6 x 1059

    sys.settrace(watch)
    called()
    sys.settrace(None)
    sys.setprofile(profile)
    called()
    sys.setprofile(None)


def threaded():
    for _ in range(25):
        bytes(1027)  # 300 x 1060


def collected(phase, info):
    if phase == "start":
        bytes(1028)  # 3 x 1061


def signalled(number, frame):
    bytes(1029)  # 3 x 1062


def gone(reference):
    bytes(1030)  # 3 x 1063


def at_exit():
    bytes(1031)  # 1 x 1064


def one_round():
    plain()
    caller(lambda one, other: bytes(1032))  # 3 x 1065
    things = [Thing() for _ in range(4)]
    things.sort()
    things[0].missing
    with things[0]:
        pass
    things[0].shown
    del things
    whole = delegating()
    for _ in range(5):
        next(whole)
    whole.close()
    next(numbers())
    try:
        failing(4)
    except KeyError:
        pass
    recursion(200)
    inner()
    asyncio.run(together())
    traced()
    workers = [threading.Thread(target=threaded) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    list(map(lambda _: bytes(1033), range(5)))  # 15 x 1066
    [bytes(1034) for _ in range(5)]  # 15 x 1067
    list(bytes(1035) for _ in range(5))  # 15 x 1068
    functools.reduce(lambda one, other: bytes(1036), range(4))  # 9 x 1069
    re.sub("a", lambda match: "b" if bytes(1037) else "", "banana")  # 9 x 1070
    exec("def made():\n    return bytes(2000)\nmade()\n", {})
    gc.callbacks.append(collected)
    gc.collect()
    gc.callbacks.remove(collected)
    signal.raise_signal(signal.SIGUSR1)
    thing = Thing()
    reference = weakref.ref(thing, gone)
    del thing
    child = os.fork()
    if child == 0:
        bytes(1038)  # 3 x 1071
        os._exit(0)
    os.waitpid(child, 0)
    del reference


def main():
    signal.signal(signal.SIGUSR1, signalled)
    atexit.register(at_exit)
    gc.disable()
    for _ in range(ROUNDS):
        one_round()


main()
