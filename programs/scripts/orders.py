"""Writes orders as JSON: what README shows first."""

import json


class Order:
    def __init__(self, number):
        self.number = number
        self.note = "order %d " % number * 60


def load(count):
    return [Order(number) for number in range(count)]


def as_json(orders):
    return json.dumps([vars(order) for order in orders])


print(len(as_json(load(10000))))
