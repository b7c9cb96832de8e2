"""The allocation tests are programs of their own, which mallow runs."""

collect_ignore_glob = ["allocations/*"]
