"""What splitting a header costs."""

import header
import mallow

OPERATIONS = tuple(range(1000))


def run():
    for _ in OPERATIONS:
        header.split("no-cache, max-age=60")


mallow.ops(len(OPERATIONS))
mallow.measure("split", run)
