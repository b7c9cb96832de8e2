"""Maps memory on lines of its own, and says what memray has seen of them: mapped.py none|memray [FILE].

It prints LINE COUNT BYTES of what was mapped, freed or not. The end comes at once, so that what lived lives on for whoever looks from outside.
"""

import mmap
import os
import sys

kept = []


def keep():
    for _ in range(3):
        kept.append(mmap.mmap(-1, 1 << 20))  # kept


def pass_by():
    for _ in range(10):
        mmap.mmap(-1, 50_000).close()  # passing


def map_file():
    with open(__file__, "rb") as file:
        kept.append(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))  # file


def grow():
    memory = mmap.mmap(-1, 8192)  # small
    memory.resize(65536)  # grown
    kept.append(memory)


def work():
    keep()
    pass_by()
    map_file()
    grow()


def seen_by_memray(path):
    import memray

    with memray.Tracker(path):
        work()
    stats = {}
    for record in memray.FileReader(path).get_allocation_records():
        if memray.AllocatorType(record.allocator).name == "MMAP":
            for _, file, line in record.stack_trace(max_stacks=1):
                if file == __file__:
                    count, size = stats.get(line, (0, 0))
                    stats[line] = (count + record.n_allocations, size + record.size)
    return stats


def main():
    if sys.argv[1] == "memray":
        for line, (count, size) in seen_by_memray(sys.argv[2]).items():
            print(line, count, size)
    else:
        work()
    sys.stdout.flush()
    os._exit(0)


main()
