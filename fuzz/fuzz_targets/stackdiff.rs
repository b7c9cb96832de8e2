//! Any two texts, parted by a zero byte, are compared as SwiftNIO's script does.
#![no_main]

use mallow_formats::stackdiff::{aggregation, nio};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let middle = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (before, after) = data.split_at(middle);
    let (before, after) = (aggregation(before), aggregation(after));
    let mut out = Vec::new();
    // Memory takes everything.
    assert!(nio(&before, &after, &mut out).is_ok());
    assert!(out.starts_with(b"\n### only in AFTER\n"));
});
