//! Any bytes given to the reader of massif's files end in a profile with its warnings or in one named error: never a panic, never an endless
//! loop, never more memory than the input justifies. What was read, written again and read again, keeps its sums.
#![no_main]

use mallow_formats::export::{self, ExportFormat, ExportOptions, Measure};
use mallow_formats::{Format, read_as};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    match read_as(data, Format::Massif) {
        // A message that cannot be printed is as bad as no message.
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(imported) => {
            let options = ExportOptions { measure: Measure::Peak };
            let mut out = Vec::new();
            let written = export::write(&imported.profile, ExportFormat::Massif, &options, &mut out);
            assert!(written.is_ok());
            let again = read_as(&out, Format::Massif).map(|again| again.profile.totals());
            let (before, after) = (imported.profile.totals(), again.unwrap_or_default());
            // What is not known has no place in the file: a peak that is its last snapshot is taken for the end.
            let known = imported.profile.known;
            assert!(!known.leaked || before.leaked_bytes == after.leaked_bytes);
            assert!(!known.peak || before.peak_bytes == after.peak_bytes);
        }
    }
});
