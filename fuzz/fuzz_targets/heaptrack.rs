//! Any bytes given to the reader of heaptrack's files end in a profile with its warnings or in one named error, and what was read can be
//! written and read again.
#![no_main]

use mallow_formats::export::{ExportFormat, ExportOptions, write};
use mallow_formats::{Format, read_as};
use mallow_profile::Measure;

/// An export has a line for every allocation, and a packed input may unpack to many.
const ALLOCATIONS_MAX: u64 = 100_000;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    match read_as(data, Format::Heaptrack) {
        Ok(imported) => {
            let allocations = imported.profile.totals().allocations;
            if allocations > ALLOCATIONS_MAX {
                return;
            }
            let mut text = Vec::new();
            let options = ExportOptions { measure: Measure::Allocations };
            write(&imported.profile, ExportFormat::Heaptrack, &options, &mut text).unwrap();
            let again = read_as(&text, Format::Heaptrack).unwrap();
            assert!(again.profile.totals().allocations >= allocations);
        }
        // A message that cannot be printed is as bad as no message.
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
