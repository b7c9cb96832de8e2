"""What every test of the suite in Python shares: the operations of a run, and which fault is seeded.

A fault is seeded with GATE_SEED=alloc, leak or fd, or several of them between spaces. The line that the gate must then name
is the one that ends with the comment of that name.
"""

import itertools
import os
import signal

SEEDS = os.environ.get("GATE_SEED", "").split()
SEED_ALLOC = "alloc" in SEEDS
SEED_LEAK = "leak" in SEEDS
SEED_FD = "fd" in SEEDS

# Where seeded leaks are kept. It is as long as it will ever be, because a list that grows allocates; the numbers of the places
# are below 257, which exist already.
leaked = [None] * 257
places = itertools.count()


def operations(count):
    """The numbers of the operations, made before the region: an int above 256 is an object of its own."""
    return tuple(range(count))


# A test that hangs ends by itself.
signal.alarm(60)
