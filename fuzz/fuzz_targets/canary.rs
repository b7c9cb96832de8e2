//! A planted fault that only a fuzzer guided by coverage finds: six bytes in a row, each behind its own branch.
//! `cargo xtask fuzz` fails unless it is found. It must never be harmless, and never be fuzzed as a parser.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut wanted = b"mallow".iter();
    for byte in data {
        match wanted.next() {
            Some(next) if next == byte => {}
            Some(_) => return,
            None => break,
        }
    }
    if wanted.len() == 0 {
        panic!("the planted fault was found");
    }
});
