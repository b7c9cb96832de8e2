//! Links between our own pages lead to a file that is there, and to a heading that it has.

use super::{Finding, TextFile, Tree};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// One finding for each link that leads nowhere.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let pages = tree.files.iter().filter(|file| file.has_extension(&["md"]));
    pages.flat_map(|page| links_to_nothing(page, tree)).collect()
}

fn links_to_nothing(page: &TextFile, tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in shown_lines(&page.text) {
        for target in targets(line).filter(|target| !target.contains("://")) {
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let to = if path.is_empty() { Some(page.path.clone()) } else { beside(&page.path, path) };
            let is_there = to.is_some_and(|to| has(tree, &to, heading));
            if !is_there {
                findings.push(page.finding(index + 1, format!("`{target}` leads nowhere.")));
            }
        }
    }
    findings
}

/// The lines outside of fenced blocks, with their places.
fn shown_lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_block = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_block ^= is_fence;
        !is_block && !is_fence
    })
}

/// What stands in the second brackets of `[words](target)`.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target)
}

/// A path as seen from the folder of a page; none above the repository.
fn beside(page: &Path, target: &str) -> Option<PathBuf> {
    let mut path = page.parent()?.to_owned();
    for part in Path::new(target).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => path.pop().then_some(())?,
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(path)
}

/// Returns whether there is such a file, or a folder with files, and in a page such a heading.
fn has(tree: &Tree, path: &Path, heading: &str) -> bool {
    let mut at_path = tree.files.iter().filter(|file| file.path.starts_with(path));
    if heading.is_empty() {
        return at_path.next().is_some();
    }
    at_path.any(|file| file.path == path && headings(&file.text).contains(heading))
}

/// The headings of a page, as links name them: small letters, digits and dashes, dashes for blanks.
fn headings(text: &str) -> BTreeSet<String> {
    let lines = shown_lines(text).filter_map(|(_, line)| line.strip_prefix('#'));
    let words = lines.map(|line| line.trim_start_matches('#').trim().to_lowercase());
    let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
    words.map(|words| words.chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leads_nowhere_is_found() {
        let page = "[a](b.md), [b](../top.md#two-words), [c](https://x.example/#y), [d](#here), [e](folder/)\n## Here\n\
            ```\n[not](shown.md)\n```\n[f](gone.md) [g](b.md#gone) [h](../../out.md)\n";
        let tree = Tree::of(&[
            ("docs/a.md", page),
            ("docs/b.md", ""),
            ("docs/folder/c.md", ""),
            ("top.md", "# Two, words\n"),
        ]);
        let found: Vec<String> = check(&tree).iter().map(ToString::to_string).collect();
        let nowhere = |target: &str| format!("docs/a.md:6: `{target}` leads nowhere.");
        assert_eq!(found, [nowhere("gone.md"), nowhere("b.md#gone"), nowhere("../../out.md")]);
    }
}
