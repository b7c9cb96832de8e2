"""shares.py WORK: counted work in functions whose shares are known. Of seven parts `three` has three, `of_thread` two, `deep` one, below 40 calls of itself,
and `of_child` one, in a child. Each part is 2/3 in the first loop of `spin` and 1/3 in the second; `sorted`, which is C, calls back once in `three`. Ends
with 7."""
import os
import sys
import threading


def spin(count):
    total = 0
    for number in range(count * 2):
        total += number & 3  # twice
    for number in range(count):
        total ^= number & 3  # once
    return total


def three(count):
    sorted([1], key=lambda _: spin(count))  # called by C
    spin(count)
    spin(count)


def of_thread(count):
    spin(count)
    spin(count)


def deep(count, depth):
    if depth == 0:
        return spin(count)
    return deep(count, depth - 1)


def of_child(count):
    child = os.fork()
    if child == 0:
        spin(count)
        os._exit(0)
    os.waitpid(child, 0)


def main():
    count = int(sys.argv[1]) * 1000
    three(count)
    thread = threading.Thread(target=of_thread, args=(count,))
    thread.start()
    thread.join()
    deep(count, 40)
    of_child(count)
    return 7


if __name__ == "__main__":
    sys.exit(main())
