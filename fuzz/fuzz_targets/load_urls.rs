//! Any bytes given to the readers of URL lists end in targets or in one named error: never a panic, never a loop without end.
#![no_main]

use mallow_load::{Url, parse_urls};
use std::path::Path;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    // With a base, no name is looked up.
    let base =
        Url { address: ([127, 0, 0, 1], 80).into(), host: "localhost".to_owned(), path: "/".to_owned() };
    let mut attach = |_: &Path| Ok(b"attached".to_vec());
    match parse_urls(&text, Path::new("urls.txt"), Some(&base), false, &mut attach) {
        Ok(file) => {
            assert!(!file.targets.is_empty() && file.targets.iter().all(|it| it.path.starts_with('/')))
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
