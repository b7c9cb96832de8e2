//! Any bytes given to the reader of heaptrack's files end in a profile with its warnings or in one named error: never a panic,
//! never an endless loop, never more memory than the input justifies.
#![no_main]

use mallow_formats::{Format, read_as};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(error) = read_as(data, Format::Heaptrack) {
        // A message that cannot be printed is as bad as no message.
        assert!(!error.to_string().is_empty());
    }
});
