"""A promise with a chain of 16 futures, each derived from the one before by a callback.

With PYTHONMALLOC=malloc, which mallow sets, each object is one allocation.
200 operations x (1 promise + 16 futures + 1 iterator over the links) = 3600. The iterator over the operations: + 1. Functions
and numbers exist already.

expect: allocations=3601 remaining=0 descriptors=0 ops=200
"""

import os

import gate
import mallow

OPERATIONS = gate.operations(200)
LINKS = gate.operations(16)


class Future:
    __slots__ = ("value", "function", "derived")

    def __init__(self):
        self.value = self.function = self.derived = None

    def then(self, function):
        self.function = function
        self.derived = Future()
        return self.derived

    def fulfil(self, value):
        future = self
        while future.derived is not None:
            value = future.function(value)
            future = future.derived
        future.value = value


def keep(value):
    return value


def run():
    if gate.SEED_FD:
        os.open("/dev/null", os.O_RDONLY)  # SEED_FD
    for operation in OPERATIONS:
        promise = last = Future()
        for _ in LINKS:
            last = last.then(keep)
        promise.fulfil(operation)
        assert last.value is operation
        if gate.SEED_ALLOC:
            object()  # SEED_ALLOC
        if gate.SEED_LEAK and operation % 100 == 0:
            gate.leaked[next(gate.places)] = object()  # SEED_LEAK


mallow.ops(len(OPERATIONS))
mallow.measure("callback_chain", run)
