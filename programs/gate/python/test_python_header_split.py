"""Splits the value of an HTTP header.

With PYTHONMALLOC=malloc, which mallow sets, each object is one allocation.
1000 operations x (1 array of the list + 4 strings) = 5000. The lists themselves come from the interpreter's stock of lists,
which is empty when the region begins; two are in use at a time, the new one and the one that it replaces: + 2. The iterator
over the operations: + 1.

expect: allocations=5003 remaining=0 descriptors=0 ops=1000
"""

import os

import gate
import mallow

OPERATIONS = gate.operations(1000)


def run():
    if gate.SEED_FD:
        os.open("/dev/null", os.O_RDONLY)  # SEED_FD
    for operation in OPERATIONS:
        parts = "no-cache, max-age=60, must-revalidate, private".split(", ")
        assert parts[1] == "max-age=60"
        if gate.SEED_ALLOC:
            object()  # SEED_ALLOC
        if gate.SEED_LEAK and operation % 100 == 0:
            gate.leaked[next(gate.places)] = object()  # SEED_LEAK


mallow.ops(len(OPERATIONS))
mallow.measure("header_split", run)
