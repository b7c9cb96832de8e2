//! What is fuzzed: a target per parser, found by name.
//!
//! A target is a function that takes any bytes. It must never panic for a sound parser, and must panic when a parser breaks
//! its promise. All targets are in one program, so that `cargo xtask ci` builds one. Where they run for minutes, each has a program of its
//! own, from the same source (`MALLOW_FUZZ_ONLY`, read by `main.rs`): libFuzzer looks at the counters of all code in the program after each input, and
//! with all parsers in it that took seven eighths of the time.

pub mod bare_trace;
mod targets;

pub use targets::TARGETS;

/// A target: its name, which is that of its folder of seeds, and what it does with an input.
#[derive(Clone, Copy)]
pub struct Target {
    /// As on the command line of `cargo xtask fuzz`.
    pub name: &'static str,
    /// Runs the parser over one input.
    pub run: fn(&[u8]),
}

/// The name of the target with the planted fault, which is no parser.
pub const CANARY: &str = "canary";

/// The variable that names the target to the fuzzing program.
pub const TARGET_VARIABLE: &str = "MALLOW_FUZZ_TARGET";

/// The target of this name. Found while the program is built, so that one for a single target holds no code of others.
#[must_use]
pub const fn target(name: &str) -> Option<Target> {
    if is_same(name, CANARY) {
        return Some(Target { name: CANARY, run: targets::canary });
    }
    let mut index = 0;
    while index < TARGETS.len() {
        if is_same(name, TARGETS[index].name) {
            return Some(TARGETS[index]);
        }
        index += 1;
    }
    None
}

const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut index = 0;
    while index < one.len() && index < other.len() && one[index] == other[index] {
        index += 1;
    }
    index == one.len() && index == other.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn corpus() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
    }

    #[test]
    fn every_seed_of_every_target_passes() {
        for target in TARGETS {
            let seeds = fs::read_dir(corpus().join(target.name)).expect("each target has a folder of seeds");
            let mut count = 0;
            for seed in seeds {
                (target.run)(&fs::read(seed.unwrap().path()).unwrap());
                count += 1;
            }
            assert!(count > 0, "fuzz/corpus/{} holds no seed", target.name);
        }
    }

    #[test]
    fn every_folder_of_seeds_has_its_target() {
        let folders: BTreeSet<String> = fs::read_dir(corpus())
            .unwrap()
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        let names: BTreeSet<String> = TARGETS.iter().map(|target| target.name.to_owned()).collect();
        assert_eq!(names, folders);
        assert_eq!(names.len(), TARGETS.len(), "a name stands twice");
    }

    #[test]
    fn a_target_is_found_by_its_whole_name() {
        assert!(TARGETS.iter().all(|known| target(known.name).is_some_and(|it| it.name == known.name)));
        for unknown in ["", "heap", "heaptrack_", "elf\0"] {
            assert!(target(unknown).is_none(), "{unknown}");
        }
    }

    #[test]
    #[should_panic(expected = "the planted fault was found")]
    fn the_canary_has_its_fault() {
        (target(CANARY).unwrap().run)(b"mallow");
    }
}
