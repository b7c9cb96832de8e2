#!/bin/sh
# What cargo runs instead of the compiler for our own crates when `ci` builds all tests: clippy, which compiles as well.
# A test program is not optimized, whatever its crate is: that takes longer than its tests. The libraries below it, which other
# programs wait for, are as `Cargo.toml` says. The tests of mallow-symbols read the inlined calls of their own program, and one of
# mallow-collect's has a bound of time.
case "$CARGO_PKG_NAME $* " in
    "mallow-symbols "* | "mallow-collect "*) ;;
    *" --test "*) exec clippy-driver "$@" -C opt-level=0 ;;
esac
exec clippy-driver "$@"
