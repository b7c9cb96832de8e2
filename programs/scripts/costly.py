"""Programs whose cost under a profiler is measured: what `cargo xtask bench --only scripts` runs.

    costly.py json|DEPTH ROUNDS [memray FILE | memray-native FILE]

It prints how long its work took in seconds, by the clock, and by its processors. Each round of `json` writes, reads and searches a text; each of a
depth makes three objects at different lines, below so many calls.
"""

import contextlib
import json
import re
import sys
import time

ROWS = [{"number": number, "name": "row " * 5, "parts": [1.5, None, "x" * number]} for number in range(50)]


def of_json(rounds):
    for _ in range(rounds):
        text = json.dumps(ROWS)
        found = json.loads(text)
        re.sub("row", lambda match: match.group().upper(), found[3]["name"])


def at_depth(depth, rounds):
    if depth > 1:
        return at_depth(depth - 1, rounds)
    for _ in range(rounds):
        one = [1.5]
        other = {1: one}
        (one, other, 1)


def tracker(words):
    """memray, watching what runs within it; nobody where it is not asked for."""
    if not words:
        return contextlib.nullcontext()
    import memray

    return memray.Tracker(words[1], native_traces=words[0] == "memray-native")


def main():
    work, rounds = sys.argv[1], int(sys.argv[2])
    with tracker(sys.argv[3:]):
        began, used = time.perf_counter(), time.process_time()
        if work == "json":
            of_json(rounds)
        else:
            # `main` and the module are two of the frames.
            at_depth(int(work) - 2, rounds)
        took = time.perf_counter() - began, time.process_time() - used
    print(*took)


main()
