//! What splitting a header costs: 1000 operations x (1 Vec, which starts with room for 4, + 2 Strings) = 3000.

use mallow_markers::{keep, measure, ops};

const OPS: u64 = 1000;

fn main() {
    ops(OPS);
    measure("split", || {
        for _ in 0..OPS {
            keep(gated::split(keep("no-cache, max-age=60")));
        }
    });
}
