#!/bin/sh
# What cargo runs instead of the compiler for our own crates: the compiler, with the flags that libFuzzer needs.
exec "$@" $COVERAGE
