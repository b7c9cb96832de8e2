//! The tree of folders in CONTRIBUTING.md shows what the repository has, and each path and each test that ARCHITECTURE.md and the design's pages name
//! is there.

use super::manual::MANUAL;
use super::{Finding, TextFile, Tree};
use std::collections::BTreeSet;
use std::path::{Component, Path};

/// The page with the tree: a folder, blanks, and what it is for, in a block of its own.
const TREE: &str = "CONTRIBUTING.md";
/// Where the pages of the design lie.
const DESIGN: &str = "docs/design";
/// Where end-to-end tests lie; `FILE::TEST` on a page is one of them.
const TESTS: &str = "e2e/tests";

/// One finding for each folder that a tree lacks, and for each that is not there.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let folders: BTreeSet<&str> = tree.files.iter().filter_map(|file| top_folder(&file.path)).collect();
    let mut findings: Vec<Finding> = tree.get(TREE).map_or_else(Vec::new, |page| differences(page, &folders));
    for page in
        tree.files.iter().filter(|file| file.path == Path::new(MANUAL) || file.path.starts_with(DESIGN))
    {
        findings.extend(paths_that_are_gone(page, tree, &folders));
        findings.extend(tests_that_are_gone(page, tree));
    }
    findings
}

/// The first part of the path of a file that does not lie beside README.md; hidden folders are no rooms of the house.
fn top_folder(path: &Path) -> Option<&str> {
    let mut parts = path.components();
    let Component::Normal(first) = parts.next()? else { return None };
    parts.next()?;
    first.to_str().filter(|name| !name.starts_with('.'))
}

fn differences(page: &TextFile, folders: &BTreeSet<&str>) -> Vec<Finding> {
    let shown: BTreeSet<&str> = page.text.lines().filter_map(shown_folder).collect();
    let missing = folders.difference(&shown).map(|name| format!("its tree of folders lacks {name}/."));
    let gone = shown.difference(folders).map(|name| format!("its tree shows {name}/, which is not there."));
    missing.chain(gone).map(|sentence| page.finding(0, sentence)).collect()
}

/// The folder of a line such as `crates/     runs in mallow's process`.
fn shown_folder(line: &str) -> Option<&str> {
    let (name, rest) = line.split_once("/  ")?;
    let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    (is_name && !name.is_empty() && !rest.trim().is_empty()).then_some(name)
}

/// Paths in backticks that begin with a folder of ours.
fn paths_that_are_gone(manual: &TextFile, tree: &Tree, folders: &BTreeSet<&str>) -> Vec<Finding> {
    let is_there = |path: &str| tree.files.iter().any(|file| file.path.starts_with(path));
    let mut findings = Vec::new();
    for (index, line) in manual.text.lines().enumerate() {
        let quoted = line.split('`').skip(1).step_by(2);
        let paths =
            quoted.filter(|text| text.split_once('/').is_some_and(|(first, _)| folders.contains(first)));
        let gone = paths.filter(|path| !path.contains('*') && !is_there(path.trim_end_matches('/')));
        findings.extend(gone.map(|path| manual.finding(index + 1, format!("there is no {path}."))));
    }
    findings
}

/// Tests in backticks, whose long names may end in dots.
fn tests_that_are_gone(page: &TextFile, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in page.text.lines().enumerate() {
        for quoted in line.split('`').skip(1).step_by(2) {
            let Some((file, test)) = quoted.split_once("::") else { continue };
            let Some(file) = tree.get(&format!("{TESTS}/{file}.rs")) else { continue };
            let head = match test.strip_suffix('…') {
                Some(begin) => format!("fn {begin}"),
                None => format!("fn {test}("),
            };
            if !file.text.contains(&head) {
                findings.push(page.finding(index + 1, format!("there is no test {quoted}.")));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACES: &[(&str, &str)] = &[("crates/a/src/lib.rs", ""), ("docs/guide.md", ""), (".ci/run", "")];

    fn sentences(page: &str, text: &str) -> Vec<String> {
        let tree = Tree::of(&[PLACES, &[(page, text)]].concat());
        check(&tree).into_iter().map(|finding| finding.sentence).collect()
    }

    #[test]
    fn a_tree_shows_what_is_there() {
        let whole = "```\ncrates/     the code\ndocs/       the guide\n```\n";
        assert!(sentences(TREE, whole).is_empty());
        let found = sentences(TREE, "crates/     the code\nold/        a thing\n");
        assert_eq!(found, ["its tree of folders lacks docs/.", "its tree shows old/, which is not there."]);
    }

    #[test]
    fn a_path_that_is_named_is_there() {
        let named =
            "`crates/a/src`, `crates/a/src/lib.rs` (`of`), `docs/guide.md`, `elsewhere/x.rs`, `crates/*`";
        assert!(sentences(MANUAL, named).is_empty());
        assert_eq!(sentences(MANUAL, "`crates/a/src/old.rs`"), ["there is no crates/a/src/old.rs."]);
        let found = sentences("docs/design/b.md", "`crates/a/src/old.rs`");
        assert_eq!(found, ["there is no crates/a/src/old.rs."]);
    }

    #[test]
    fn a_test_that_is_named_is_there() {
        let test = ("e2e/tests/it.rs", "fn it_holds_what_it_says() {}");
        let of = |text: &str| -> Vec<String> {
            check(&Tree::of(&[test, ("docs/design/b.md", text)])).into_iter().map(|it| it.sentence).collect()
        };
        assert!(of("`it::it_holds_what_it_says`, `it::it_holds_…`, `bootstrap::start_inside`").is_empty());
        let found = of("`it::it_holds`, `it::it_held_…`");
        assert_eq!(found, ["there is no test it::it_holds.", "there is no test it::it_held_…."]);
    }
}
