#!/bin/bash
# What `cargo test --doc` runs instead of rustdoc: the same call over the same libraries, but to check what the pages are made of, with every
# warning an error, and not to run their examples. `cargo doc` would check all libraries once more first, and writing 4,000 pages takes as long again.
# The option is one of the nightly compiler's.
set -euo pipefail
words=()
while [ $# -gt 0 ]; do
    case "$1" in
        --test) ;;
        --test-run-directory | --test-runtool | --test-runtool-arg | --test-args) shift ;;
        *) words+=("$1") ;;
    esac
    shift
done
case " ${words[*]-} " in
    *" --crate-name "*) RUSTC_BOOTSTRAP=1 exec rustdoc "${words[@]}" -D warnings -Z unstable-options --check ;;
    # Questions for the version.
    *) exec rustdoc "${words[@]}" ;;
esac
