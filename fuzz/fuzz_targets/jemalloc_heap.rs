//! Any bytes given to the reader of jemalloc's heap profiles end in a profile with its warnings or in one named error: never a panic,
//! never an endless loop, never more memory than the input justifies. What was read can be written again.
#![no_main]

use mallow_formats::export::{self, ExportFormat, ExportOptions, Measure};
use mallow_formats::{Format, read_as};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    match read_as(data, Format::JemallocHeap) {
        // A message that cannot be printed is as bad as no message.
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(imported) => {
            let options = ExportOptions { measure: Measure::Leaked };
            let mut out = Vec::new();
            let written = export::write(&imported.profile, ExportFormat::JemallocHeap, &options, &mut out);
            assert!(written.is_ok());
            assert!(read_as(&out, Format::JemallocHeap).is_ok());
        }
    }
});
