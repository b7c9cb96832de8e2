"""What splitting a header costs."""

import pathlib
import sys

import mallow

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent))
import header

OPERATIONS = tuple(range(1000))


def run():
    for _ in OPERATIONS:
        header.split("no-cache, max-age=60")


mallow.ops(len(OPERATIONS))
mallow.measure("split", run)
