//! ARCHITECTURE.md names no crate that is gone; that each crate has its row there is held by `arrows.rs`.

use super::packages::Member;
use super::{Finding, Tree};
use std::path::Path;

pub(super) const MANUAL: &str = "ARCHITECTURE.md";

/// Every crate's folder that ARCHITECTURE.md names exists.
pub(super) fn check(tree: &Tree, members: &[Member]) -> Vec<Finding> {
    let Some(manual) = tree.get(MANUAL) else {
        let sentence = "it is missing; newcomers start there.".to_owned();
        return vec![Finding { path: MANUAL.into(), line: 0, sentence }];
    };
    let mut findings = Vec::new();
    for (index, line) in manual.text.lines().enumerate() {
        for folder in crate_folders(line) {
            let manifest = Path::new(&folder).join("Cargo.toml");
            if !members.iter().any(|member| member.manifest == manifest) {
                findings.push(manual.finding(index + 1, format!("there is no {folder}.")));
            }
        }
    }
    findings
}

/// Names with their dashes, so that `mallow-wire` is not found in `mallow-wireless`.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_')
}

/// Every `crates/NAME` and `recorder/NAME` with a name of ours in a line.
fn crate_folders(line: &str) -> Vec<String> {
    let mut folders = Vec::new();
    for parent in ["crates/", "recorder/"] {
        for (at, _) in line.match_indices(parent) {
            let name = words(&line[at + parent.len()..]).next().unwrap_or("").trim_end_matches('-');
            if name.starts_with("mallow-") {
                folders.push(format!("{parent}{name}"));
            }
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire() -> Member {
        let manifest = "crates/mallow-wire/Cargo.toml".into();
        Member { name: "mallow-wire".to_owned(), manifest, uses: Vec::new() }
    }

    #[test]
    fn a_manual_that_names_what_is_there_passes() {
        let tree = Tree::of(&[(MANUAL, "`crates/mallow-wire` is shared; crates/* run in our process.\n")]);
        assert_eq!(check(&tree, &[wire()]), []);
    }

    #[test]
    fn a_name_that_outlived_its_crate_is_found() {
        let tree = Tree::of(&[(MANUAL, "mallow-wire\nand `crates/mallow-old/src/lib.rs`\n")]);
        let found = check(&tree, &[wire()]);
        assert_eq!(found[0].to_string(), "ARCHITECTURE.md:2: there is no crates/mallow-old.");
    }

    #[test]
    fn a_repository_without_a_manual_is_found() {
        assert_eq!(check(&Tree::of(&[]), &[]).len(), 1);
    }
}
