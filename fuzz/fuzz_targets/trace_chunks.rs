//! Chunks with any payloads in any order, checksums right, end in a profile with its warnings or in one named error.
//! This is what reaches the decoders; `trace_reader` is what reaches the walk from chunk to chunk.
#![no_main]

use mallow_formats::native::read_bytes;
use mallow_fuzz::{bare_chunks, trace_of};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(error) = read_bytes(&trace_of(&bare_chunks(data))) {
        // A message that cannot be printed is as bad as no message.
        assert!(!error.to_string().is_empty());
    }
});
