//! The licences of everything that is in the binary, as packages carry them: `THIRD-PARTY.txt`, made from what cargo says of the
//! dependencies and from the texts that their packages hold, and the Rust project's own page on its standard library.
//!
//! Nothing may be left out: a dependency without a text gets the one of its licence's name, and one whose licence has no known text is
//! a failure.

use super::stage::read;
use crate::run;
use crate::workspaces::Workspace;
use cargo_metadata::{DependencyKind, Metadata, Node, NodeDep, Package, PackageId, TargetKind};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The C library that is linked in. Rust brings it along and no package holds its licence.
const MUSL: &str = include_str!("musl.txt");

/// How files with terms begin.
const NAMES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// Files for the documentation's folder.
pub(super) fn files(root: &Path) -> Result<Vec<(&'static str, Vec<u8>)>, String> {
    let workspace = Workspace { folder: PathBuf::new() };
    let metadata = workspace.metadata(root, &["--locked", "--filter-platform", super::binary::TARGET])?;
    let mut parts = Vec::new();
    for package in below(&metadata, "mallow")? {
        parts.push(Part::of(package)?);
    }
    let text = page(&parts);
    Ok(vec![("THIRD-PARTY.txt", text.into_bytes()), ("RUST-STANDARD-LIBRARY.html", standard_library(root)?)])
}

/// What one dependency's authors ask to be told.
struct Part {
    /// Name, version and licence.
    title: String,
    texts: Vec<String>,
}

impl Part {
    fn of(package: &Package) -> Result<Part, String> {
        let licence = package.license.clone().unwrap_or_default();
        let title = format!("{} {} ({licence})", package.name, package.version);
        let folder = package.manifest_path.parent().ok_or_else(|| format!("{title} has no folder."))?;
        let mut files = Vec::new();
        find(folder.as_std_path(), 0, &mut files)?;
        files.sort();
        let mut texts: Vec<String> = Vec::new();
        for file in files {
            texts.push(String::from_utf8_lossy(&read(&file)?).into_owned());
        }
        if texts.is_empty() {
            let by = package.authors.join(", ");
            texts.push(
                by_name(&licence, &by).ok_or_else(|| format!("{title} holds no text of its licence."))?,
            );
        }
        Ok(Part { title, texts })
    }
}

/// The text of the first licence in an expression that has one.
fn by_name(expression: &str, authors: &str) -> Option<String> {
    let words = expression.split(|c: char| c.is_whitespace() || "()/".contains(c));
    let text = words.filter_map(spdx::license_id).map(|id| id.text()).next()?;
    let authors = if authors.is_empty() { String::new() } else { format!("Authors: {authors}\n\n") };
    Some(format!("{authors}{text}"))
}

/// Files with terms in a package's folder and not far below it: some hold a library in C with a licence of its own.
fn find(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let because = |error: std::io::Error| format!("{} cannot be listed: {error}.", folder.display());
    for entry in std::fs::read_dir(folder).map_err(because)? {
        let path = entry.map_err(because)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        let is_source = [".RS", ".C", ".H", ".PY"].iter().any(|ending| name.ends_with(ending));
        if path.is_file() && !is_source && NAMES.iter().any(|start| name.starts_with(start)) {
            files.push(path);
        } else if path.is_dir() && depth < 3 && name != "TARGET" {
            find(&path, depth + 1, files)?;
        }
    }
    Ok(())
}

/// Every package of others that is linked into one of ours. What only runs while it is built is not.
fn below<'a>(metadata: &'a Metadata, name: &str) -> Result<Vec<&'a Package>, String> {
    let nodes: BTreeMap<&PackageId, &Node> =
        metadata.resolve.iter().flat_map(|resolve| &resolve.nodes).map(|node| (&node.id, node)).collect();
    let own = metadata.packages.iter().find(|package| package.name == name);
    let mut next = vec![&own.ok_or_else(|| format!("there is no package {name}."))?.id];
    let mut seen: BTreeSet<&PackageId> = next.iter().copied().collect();
    let is_linked = |one: &&NodeDep| one.dep_kinds.iter().any(|it| it.kind == DependencyKind::Normal);
    while let Some(id) = next.pop() {
        for one in nodes.get(id).into_iter().flat_map(|node| &node.deps).filter(is_linked) {
            if !is_macro(&metadata[&one.pkg]) && seen.insert(&one.pkg) {
                next.push(&one.pkg);
            }
        }
    }
    let mut packages: Vec<&Package> =
        seen.into_iter().map(|id| &metadata[id]).filter(|package| package.source.is_some()).collect();
    packages.sort_by_key(|package| (package.name.to_string(), package.version.clone()));
    Ok(packages)
}

fn is_macro(package: &Package) -> bool {
    package.targets.iter().any(|target| target.kind.contains(&TargetKind::ProcMacro))
}

/// Each text once, under the names of all that have it.
fn page(parts: &[Part]) -> String {
    let mut text = String::from(
        "The program mallow is linked with what is listed here. The Rust standard library, which is linked in as well, is in\n\
         RUST-STANDARD-LIBRARY.html.\n\n",
    );
    let mut titles: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for part in parts {
        let _ = writeln!(text, "  {}", part.title);
        part.texts.iter().for_each(|it| _ = titles.entry(it.trim()).or_default().insert(&part.title));
    }
    text.push_str("  musl, the C library (MIT)\n");
    titles.entry(MUSL.trim()).or_default().insert("musl");
    let mut sections: Vec<(BTreeSet<&str>, &str)> =
        titles.into_iter().map(|(text, titles)| (titles, text)).collect();
    sections.sort();
    for (titles, terms) in sections {
        let rule = "=".repeat(100);
        let titles: Vec<&str> = titles.into_iter().collect();
        let _ = write!(text, "\n{rule}\n{}\n{rule}\n\n{terms}\n", titles.join("\n"));
    }
    text
}

/// What the Rust project says of the library that it links into every program; it comes with the compiler.
fn standard_library(root: &Path) -> Result<Vec<u8>, String> {
    let sysroot = run::captured(Command::new("rustc").args(["--print", "sysroot"]).current_dir(root))?;
    read(&Path::new(sysroot.trim_end()).join("share/doc/rust/COPYRIGHT-library.html"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stands_once_under_all_that_have_it() {
        let part = |title: &str, text: &str| Part { title: title.to_owned(), texts: vec![text.to_owned()] };
        let page =
            page(&[part("a 1 (MIT)", "terms\n"), part("b 2 (MIT)", "terms"), part("c 3 (ISC)", "others")]);
        assert_eq!(page.matches("\nterms\n").count(), 1, "{page}");
        assert!(page.contains("=\na 1 (MIT)\nb 2 (MIT)\n="), "{page}");
        assert!(page.contains("=\nc 3 (ISC)\n=") && page.contains("=\nmusl\n="), "{page}");
    }

    #[test]
    fn a_licence_without_a_file_has_its_text_by_name() {
        let text = by_name("MIT/Apache-2.0", "A, B").unwrap();
        assert!(
            text.starts_with("Authors: A, B\n\n") && text.contains("Permission is hereby granted"),
            "{text}"
        );
        assert_eq!(by_name("a house's own", ""), None);
    }

    #[test]
    fn what_is_linked_in_is_told_and_what_builds_it_is_not() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let files = files(root).unwrap();
        let page = String::from_utf8_lossy(&files[0].1).into_owned();
        // Zstandard's own terms lie deep in the package that holds it.
        for there in ["\n  zstd-sys ", "\n  gimli ", "\n  musl, ", "Meta Platforms", "Rich Felker"] {
            assert!(page.contains(there), "{there}");
        }
        for absent in ["\n  cc ", "\n  syn ", "\n  serde_derive ", "\n  proptest ", "\n  mallow-"] {
            assert!(!page.contains(absent), "{absent}");
        }
    }
}
