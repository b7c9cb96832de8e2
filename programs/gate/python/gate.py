"""What every test of the suite in Python shares: the operations of a run, and which fault is seeded.

A fault is seeded with GATE_SEED=alloc, leak or fd. The line that the gate must then name is the one that ends with the
comment of that name.
"""

import itertools
import os
import signal

SEED_ALLOC = os.environ.get("GATE_SEED") == "alloc"
SEED_LEAK = os.environ.get("GATE_SEED") == "leak"
SEED_FD = os.environ.get("GATE_SEED") == "fd"

# Where seeded leaks are kept. It is as long as it will ever be, because a list that grows allocates; the numbers of the places
# are below 257, which exist already.
leaked = [None] * 257
places = itertools.count()


def operations(count):
    """The numbers of the operations, made before the region: an int above 256 is an object of its own."""
    return tuple(range(count))


# A test that hangs ends by itself.
signal.alarm(60)
