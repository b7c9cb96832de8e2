//! Any bytes given to the reader of access logs end in targets or in one named error: never a panic, never more memory than the
//! input justifies.
#![no_main]

use mallow_load::parse_access_log;
use std::path::Path;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    match parse_access_log(data, Path::new("access.log"), true) {
        Ok(file) => {
            let lines = data.split(|byte| *byte == b'\n').count() as u64;
            let requests: u64 = file.targets.iter().map(|target| u64::from(target.weight)).sum();
            assert!(requests >= 1 && requests <= lines);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
