//! The program that libFuzzer drives over whatever bytes it makes up: the one target that it was built for, or the one that an
//! environment variable names.
#![no_main]

use mallow_fuzz::{TARGET_VARIABLE, Target, target};
use std::sync::OnceLock;

/// The target that this was built for.
const ONLY: Option<Target> = match option_env!("MALLOW_FUZZ_ONLY") {
    Some(name) => match target(name) {
        Some(target) => Some(target),
        None => panic!("there is no fuzz target of this name"),
    },
    None => None,
};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    match ONLY {
        Some(target) => (target.run)(data),
        None => by_variable(data),
    }
});

fn by_variable(data: &[u8]) {
    static RUN: OnceLock<fn(&[u8])> = OnceLock::new();
    let run = RUN.get_or_init(|| {
        let name = std::env::var(TARGET_VARIABLE).expect("the variable names the target");
        target(&name).unwrap_or_else(|| panic!("there is no fuzz target `{name}`")).run
    });
    run(data);
}
