//! Any bytes given to the reader of other generators' summaries end in figures or in nothing: never a panic, and no more failures
//! than requests.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Some(outside) = mallow_load::outside::read(&String::from_utf8_lossy(data)) {
        assert!(outside.succeeded() <= outside.requests);
    }
});
