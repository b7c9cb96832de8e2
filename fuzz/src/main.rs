//! The program that libFuzzer drives: one target, named by an environment variable, over whatever bytes it makes up.
#![no_main]

use mallow_fuzz::{TARGET_VARIABLE, target};
use std::sync::OnceLock;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    static RUN: OnceLock<fn(&[u8])> = OnceLock::new();
    let run = RUN.get_or_init(|| {
        let name = std::env::var(TARGET_VARIABLE).expect("the variable names the target");
        target(&name).unwrap_or_else(|| panic!("there is no fuzz target `{name}`")).run
    });
    run(data);
});
