"""Writes into a bytearray that has room and reads from it; two of the reads copy.

With PYTHONMALLOC=malloc, which mallow sets, each object is one allocation.
1000 operations x (1 bytes + 1 bytes) = 2000; the numbers are below 257, which exist already. The bytearray, its storage and
the tuple that its size is passed in: + 3. The tuple that unpack_from returns is used again by the next: + 1. The iterator over
the operations: + 1.

expect: allocations=2005 remaining=0 descriptors=0 ops=1000
"""

import os
import struct

import gate
import mallow

OPERATIONS = gate.operations(1000)
RECORD = struct.Struct(">QI16s11s")


def run():
    buffer = bytearray(256)
    if gate.SEED_FD:
        os.open("/dev/null", os.O_RDONLY)  # SEED_FD
    for operation in OPERATIONS:
        RECORD.pack_into(buffer, 0, operation & 0xFF, 7, b"0123456789abcdef", b"how are you")
        number, seven, data, text = RECORD.unpack_from(buffer, 0)
        assert number == operation & 0xFF and seven == 7 and len(data) == 16 and text == b"how are you"
        if gate.SEED_ALLOC:
            object()  # SEED_ALLOC
        if gate.SEED_LEAK and operation % 100 == 0:
            gate.leaked[next(gate.places)] = object()  # SEED_LEAK


mallow.ops(len(OPERATIONS))
mallow.measure("buffer_rw", run)
