//! Any bytes given to the reader of gc_tracer's logs end in rows or in one named error: never a panic, never an endless
//! loop, never more rows than the input has lines.
#![no_main]

use mallow_formats::gc_log::{Choice, read};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    match read(data, &Choice::default()) {
        Ok(log) => assert!(log.rows.len() < data.len()),
        // A message that cannot be printed is as bad as no message.
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
