"""An allocation-heavy script for python3: records, strings, dictionaries and a tree that is built and dropped.

Deterministic: no clock, no random numbers, no dependence on hash order. Run it with PYTHONMALLOC=malloc, so that
the interpreter's own pools do not hide its allocations. It prints one checksum.
"""

ROUNDS = 6


class Record:
    """Instances with a dictionary each: the commonest shape of Python data."""

    def __init__(self, number):
        self.number = number
        self.name = "record %d" % number
        self.tags = ["tag%d" % (number % divisor) for divisor in (3, 5, 7)]


def tree(depth):
    """A nested tuple of 2**depth leaves."""
    if depth == 0:
        return [depth]
    return (tree(depth - 1), tree(depth - 1))


def leaves(node):
    if isinstance(node, list):
        return 1
    return leaves(node[0]) + leaves(node[1])


def words_by_length(records):
    grouped = {}
    for record in records:
        for word in record.name.split() + record.tags:
            grouped.setdefault(len(word), []).append(word.upper())
    return grouped


def one_round(number):
    records = [Record(number * 10_000 + i) for i in range(20_000)]
    grouped = words_by_length(records)
    text = ",".join(record.name for record in records)
    return len(text) + sum(len(words) for words in grouped.values()) + leaves(tree(14))


def main():
    checksum = 0
    for number in range(ROUNDS):
        checksum = (checksum * 31 + one_round(number)) % 1_000_003
    print(checksum)


if __name__ == "__main__":
    main()
