"""Takes memory on lines of its own, and says what a judge has seen of them: judged.py none|tracemalloc|memray [FILE].

A judge prints LINE COUNT BYTES: tracemalloc what lives at the end, memray all that was taken. The end comes at once, so that what lived lives
on for whoever looks from outside.
"""

import os
import sys

kept = []
TAKES = ("MALLOC", "CALLOC", "REALLOC")


def words(count):
    for number in range(count):  # range
        kept.append("word %060d" % number)  # words


def buffers(count):
    for _ in range(count):
        kept.append(bytearray(3000))  # buffers


def grown(count):
    text = []
    for number in range(count):
        text.append(str(number) * 20)  # texts
    kept.append("".join(text))  # joined


class Point:  # class
    __slots__ = ("x", "y")

    def __init__(self, x):
        self.x = x
        self.y = x * 100003  # products


def points(count):
    return [Point(number + 1000) for number in range(count)]  # points


def work():
    words(1000)
    buffers(200)
    grown(700)
    kept.append(points(500))


def add(stats, line, count, size):
    before = stats.get(line, (0, 0))
    stats[line] = (before[0] + count, before[1] + size)


def seen_by_tracemalloc():
    import tracemalloc

    tracemalloc.start(1)
    work()
    snapshot = tracemalloc.take_snapshot()
    tracemalloc.stop()
    stats = {}
    for trace in snapshot.traces:
        if trace.traceback[0].filename == __file__:
            add(stats, trace.traceback[0].lineno, 1, trace.size)
    return stats


def seen_by_memray(path):
    import memray

    with memray.Tracker(path):
        work()
    stats = {}
    for record in memray.FileReader(path).get_allocation_records():
        if memray.AllocatorType(record.allocator).name in TAKES:
            for _, file, line in record.stack_trace(max_stacks=1):
                if file == __file__:
                    add(stats, line, record.n_allocations, record.size)
    return stats


def main():
    stats = {}
    if sys.argv[1] == "tracemalloc":
        stats = seen_by_tracemalloc()
    elif sys.argv[1] == "memray":
        stats = seen_by_memray(sys.argv[2])
    else:
        work()
    for line, (count, size) in stats.items():
        print(line, count, size)
    sys.stdout.flush()
    os._exit(0)


main()
