//! A planted fault that only a fuzzer guided by coverage finds: six bytes in a row, each behind its own branch.
//! `cargo xtask fuzz` fails unless it is found. It must never be harmless, and never be fuzzed as a parser.

use std::hint::black_box;

pub(crate) fn canary(data: &[u8]) {
    let is = |index: usize, byte: u8| data.get(index) == Some(&byte);
    // The boxes keep the compiler from folding the branches into one comparison, which coverage could not climb.
    if is(0, b'm') && black_box(is(1, b'a')) && black_box(is(2, b'l')) {
        black_box(data);
        if black_box(is(3, b'l')) && black_box(is(4, b'o')) && black_box(is(5, b'w')) {
            panic!("the planted fault was found");
        }
    }
}
