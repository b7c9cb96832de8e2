#!/bin/bash
# What `cargo test --doc` runs instead of rustdoc: the same call over the same libraries, but to write the pages, with every
# warning an error, and not to run their examples. `cargo doc` would check all libraries once more first.
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
    *" --crate-name "*) exec rustdoc "${words[@]}" -D warnings --out-dir "$PAGES" ;;
    # Questions for the version.
    *) exec rustdoc "${words[@]}" ;;
esac
