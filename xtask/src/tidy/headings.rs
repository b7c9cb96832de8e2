//! Every Rust file says first what it is for.

use super::{Finding, Tree};

/// Code that enters other programs and code shared with it must not be able to reach std.
const WITHOUT_STD: &[&str] = &[
    "recorder/mallow-recorder/src/lib.rs",
    "recorder/mallow-preload/src/lib.rs",
    "recorder/mallow-timers/src/lib.rs",
];

/// Every file opens with `//!` and a sentence, and the recorder's crates say `no_std`.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        let first = file.text.lines().next().unwrap_or("");
        let is_heading = first.strip_prefix("//! ").is_some_and(|rest| !rest.trim().is_empty());
        if !is_heading {
            findings.push(file.finding(1, "it must open with `//!` and say what the file is for."));
        }
        let must_lack_std = WITHOUT_STD.iter().any(|path| file.path == std::path::Path::new(path));
        let lacks_std = |line: &str| {
            line.starts_with("#![no_std]") || line.starts_with("#![cfg_attr(not(test), no_std)]")
        };
        if must_lack_std && !file.text.lines().any(lacks_std) {
            findings.push(file.finding(0, "code that enters other programs must be `#![no_std]`."));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_with_a_heading_passes() {
        assert_eq!(check(&Tree::of(&[("a.rs", "//! Adds.\n"), ("a.c", "int x;\n")])), []);
    }

    #[test]
    fn a_file_without_a_heading_is_found() {
        for text in ["use std::fmt;\n", "", "//!\n", "// plain\n", "/// An item's.\n"] {
            let found = check(&Tree::of(&[("a.rs", text)]));
            let expected = "a.rs:1: it must open with `//!` and say what the file is for.";
            assert_eq!(found[0].to_string(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_recorder_with_std_is_found() {
        let path = "recorder/mallow-recorder/src/lib.rs";
        assert_eq!(check(&Tree::of(&[(path, "//! Records.\n")])).len(), 1);
        assert_eq!(check(&Tree::of(&[(path, "//! Records.\n#![no_std]\n")])), []);
    }
}
