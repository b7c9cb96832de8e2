//! No drawers: a module is named after the idea it holds.

use super::tokens::{group, line, places, word};
use super::{Finding, Tree};
use proc_macro2::Delimiter;

/// Names that take in anything, and therefore tell nothing.
const DRAWERS: &[&str] = &["utils", "util", "common", "helpers", "helper", "misc", "manager"];

/// No Rust file, folder or module has a drawer's name.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        for part in file.path.with_extension("").iter().filter_map(|part| part.to_str()) {
            if is_drawer(part) {
                findings.push(file.finding(0, sentence(part)));
            }
        }
        for run in file.runs() {
            for place in places(run, "mod") {
                // `mod name;` is found again as a file; only a module with its body here is new.
                let name = word(run.get(place + 1));
                if let Some(name) = name.filter(|name| is_drawer(name))
                    && group(run.get(place + 2), Delimiter::Brace).is_some()
                {
                    findings.push(file.finding(line(&run[place]), sentence(&name)));
                }
            }
        }
    }
    findings
}

/// A helper thread is a thread.
fn is_drawer(name: &str) -> bool {
    name != "helper_thread" && name.split(['_', '-']).any(|word| DRAWERS.contains(&word))
}

fn sentence(name: &str) -> String {
    format!("`{name}` says nothing about what is inside; name the idea.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ideas_pass() {
        let tree = Tree::of(&[
            ("crates/a/src/ring.rs", "mod commonplace { }\nuse x::utils; // mod misc {\n"),
            ("crates/a/src/helper_thread.rs", ""),
        ]);
        assert_eq!(check(&tree), []);
    }

    #[test]
    fn drawers_are_found_in_paths_and_in_code() {
        for (path, text) in [
            ("crates/a/src/utils.rs", ""),
            ("crates/a/src/string_helpers.rs", ""),
            ("e2e/tests/common/mod.rs", ""),
            ("crates/mallow-misc/src/lib.rs", ""),
            ("crates/a/src/lib.rs", "//! A.\npub(crate) mod manager {\n}\n"),
        ] {
            let found = check(&Tree::of(&[(path, text)]));
            assert_eq!(found.len(), 1, "{path}");
            assert!(found[0].sentence.contains("name the idea"), "{}", found[0]);
        }
    }
}
