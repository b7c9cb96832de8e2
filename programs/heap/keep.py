# Keeps what it makes in a local variable, and says what it does. Each line of its input is one more order, but for "measure": then it says what
# pympler takes its graph for, if it can be imported.
import atexit
import json
import os
import sys
import threading


class Order:
    def __init__(self, number):
        self.customer = "customer-%d-of-the-secret-list" % number


class Point:
    """Has no dictionary, so nothing changes when somebody asks what it has."""

    __slots__ = ("left", "right")

    def __init__(self, number):
        self.left = number + 1_000_000
        self.right = ["point number %d" % number, (float(number),)]


class Hostile(dict):
    """Whatever is called of it ends the program."""

    def never(self, *_):
        os._exit(77)

    __iter__ = __len__ = __contains__ = __repr__ = __sizeof__ = __hash__ = __eq__ = items = keys = values = never
    __class__ = property(never)


POINTS = {"point %d" % number: Point(number) for number in range(2_000)}


def measure():
    from pympler import asizeof

    print(json.dumps({"at": id(POINTS), "bytes": asizeof.asizeof(POINTS, align=1)}))


def later(held):
    yield len(held)


def keep():
    hostile = Hostile({"within": ["hostile"]})
    orders = [Order(number) for number in range(1_000)]
    waiting = later(["kept by a generator"] * 1_000)
    next(waiting)
    by_secret = {"token-%d-of-the-secret-list" % number: number for number in range(1_000)}
    print("ready %d %s" % (os.getpid(), "alone"), flush=True)
    for line in sys.stdin:
        if line == "measure\n":
            measure()
        else:
            orders.append(Order(int(line)))
    names = [thread.name for thread in threading.enumerate()]
    print("%d orders, %d secrets, threads %s" % (len(orders), len(by_secret), names))
    dict.clear(hostile)


atexit.register(print, "atexit")
keep()
