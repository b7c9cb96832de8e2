"""What is hard to follow of a Python program, over and over: for stacks that are held against those found from scratch.

    hazards.py ROUNDS own             one interpreter, whose lists of frames are whole stacks
    hazards.py ROUNDS other [FOLDER]  other interpreters, and greenlets, where FOLDER has them

Nothing is stated of its lines, unlike `frames.py`, which it runs in each round and in other interpreters. Code comes and goes at the same
addresses, threads allocate with and without the lock, greenlets leave each other's stacks, and when the program ends threads still run.
"""

import asyncio
import contextlib
import ctypes
import gc
import random
import runpy
import sys
import threading

FRAMES = __file__.replace("hazards.py", "frames.py")


def interpreters():
    """The module that makes interpreters, which each version calls otherwise."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        with contextlib.suppress(ImportError):
            return __import__(name)
    raise SystemExit("this Python has no interpreters beside its own")


def made(rounds):
    for number in range(rounds):
        lines = "\n" * (number % 97) + "def made(n):\n    kept = [str(n + i) for i in range(3)]\n"
        scope = {}
        exec(compile(lines + "    return sorted(kept, key=lambda text: text[::-1])\n", "made.py", "exec"), scope)
        scope["made"](number)


def deep(depth):
    try:
        return deep(depth + 1) + 1
    except RecursionError:
        return len(str(depth))


class Odd:
    def __init__(self, number):
        self.number = number
        self.circle = self

    def __del__(self):
        str(self.number + 1000)

    def __hash__(self):
        return hash(str(self.number))

    def __eq__(self, other):
        return str(self.number) == str(other.number)

    def __iter__(self):
        yield from map(str, range(self.number % 7))

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return [name, str(self.number)]


def odd(count):
    found = {Odd(number): number for number in range(count)}
    text = [one.missing for one in found] + [list(one) for one in found]
    with contextlib.suppress(KeyError):
        found[Odd(-1)]
    del found
    gc.collect()
    return len(text)


def thrown(rounds):
    def inner():
        while True:
            try:
                yield str(rounds)
            except ValueError as error:
                yield [error]
            finally:
                str(rounds + 1)

    def outer():
        yield from inner()

    for number in range(rounds):
        running = outer()
        next(running)
        running.throw(ValueError(str(number)))
        running.close()


async def awaited(depth):
    if depth:
        return await awaited(depth - 1) + [str(depth)]
    await asyncio.sleep(0)
    return [str(depth)]


async def tasks():
    await asyncio.gather(*[awaited(number % 20) for number in range(60)])


def without_lock(rounds):
    library = ctypes.CDLL(None)
    library.malloc.restype = ctypes.c_void_p
    library.free.argtypes = [ctypes.c_void_p]
    for number in range(rounds):
        library.free(library.malloc(1000 + number))


def called_back(rounds):
    """C sorts, and has Python compare."""
    compares = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    numbers = (ctypes.c_int * rounds)(*[number * 7919 % rounds for number in range(rounds)])
    compare = compares(lambda one, other: len(str(one[0])) and one[0] - other[0])
    ctypes.CDLL(None).qsort(numbers, rounds, 4, compare)


def greenlets(rounds):
    import greenlet

    def work(depth, parent):
        if depth:
            return list(map(lambda _: work(depth - 1, parent), range(1)))
        found = []
        for number in range(5):
            found.append(str(number) + str(parent.switch(number)))
        return found

    def fails():
        raise KeyError(str(rounds))

    main = greenlet.getcurrent()
    for number in range(rounds):
        others = [greenlet.greenlet(work) for _ in range(4)]
        for other in others:
            other.switch(random.randrange(12), main)
        while not all(other.dead for other in others):
            random.choice([other for other in others if not other.dead]).switch(str(number))
        with contextlib.suppress(KeyError):
            greenlet.greenlet(fails).switch()
        left = greenlet.greenlet(work)
        left.switch(3, main)
        # Greenlets that nobody goes on with are thrown out of where they stand.
        del left


def in_another_interpreter(module):
    text = f"import runpy, sys; sys.argv = ['x']; made = [str(i) for i in range(50)]; exec({MADE!r})"
    other = module.create()
    for _ in range(2):
        module.run_string(other, text)
    module.destroy(other)


MADE = """
class Thing:
    def __repr__(self):
        return str(id(self)) + ''.join(sorted(map(str, range(9)), key=lambda text: text * 2))
def work(depth):
    return [repr(Thing()) for _ in range(3)] + (work(depth - 1) if depth else [])
for depth in range(12):
    work(depth)
    exec('def made():\\n    return [str(i) for i in range(5)]\\nmade()', {})
"""


def one_round():
    made(100)
    deep(0)
    odd(50)
    thrown(30)
    asyncio.run(tasks())
    without_lock(50)
    called_back(100)


def at_the_end():
    """Of a thread that nobody waits for."""
    while True:
        made(3)
        without_lock(3)


def main():
    random.seed(17)
    rounds = int(sys.argv[1])
    is_own = sys.argv[2] == "own"
    sys.path[1:1] = sys.argv[3:4]
    module = interpreters()
    for _ in range(rounds):
        workers = [threading.Thread(target=one_round) for _ in range(2)]
        for worker in workers:
            worker.start()
        one_round()
        for worker in workers:
            worker.join()
        runpy.run_path(FRAMES)
        if is_own:
            continue
        in_another_interpreter(module)
        beside = threading.Thread(target=in_another_interpreter, args=(module,))
        beside.start()
        one_round()
        beside.join()
        if len(sys.argv) > 3:
            greenlets(20)
            worker = threading.Thread(target=greenlets, args=(10,))
            worker.start()
            greenlets(10)
            worker.join()
    for _ in range(3):
        threading.Thread(target=at_the_end, daemon=True).start()


main()
