"""What the project is about: headers."""


def split(value):
    """The parts of a header's value."""
    return value.split(", ")
