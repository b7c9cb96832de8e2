//! Any bytes given to the readers of allocators' statistics end in a state or in one named error: never a panic, never an
//! endless loop, never more memory than the input justifies.
#![no_main]

use mallow_formats::allocator::read;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Err(error) = read(data) {
        // A message that cannot be printed is as bad as no message.
        assert!(!error.to_string().is_empty());
    }
});
