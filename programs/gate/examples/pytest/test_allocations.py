"""Each allocation test in allocations/ as a test of pytest."""

import pathlib
import subprocess

import pytest

SUITE = pathlib.Path(__file__).parent / "allocations"


def mallow_check(*arguments):
    return subprocess.run(["mallow", "check", SUITE, *arguments], capture_output=True, text=True)


@pytest.mark.parametrize("name", mallow_check("--list").stdout.split())
def test_allocations(name):
    check = mallow_check("--only", name)
    assert check.returncode == 0, check.stdout + check.stderr


def test_there_are_allocation_tests():
    """An empty list would make the test above pass by not existing."""
    assert mallow_check("--list").stdout.split() == ["test_split"]
