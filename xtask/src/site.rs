//! `cargo xtask site`: the guide as a site of static pages, in `target/site/html`.
//!
//! The order of the pages is that of the table in `docs/guide/README.md`, so there is no second list. mdBook makes the pages; it is
//! installed beside what cargo builds if it is not there. What comes out is checked: every link leads somewhere, and no page loads
//! anything from another machine.

mod files;
mod html;
mod markdown;

use crate::{run, workspaces};
use files::{cannot, names, read, write};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// mdBook's version. Its pages and the names of headings in links change with it.
const VERSION: &str = "0.5.4";

const GUIDE: &str = "docs/guide";
const INDEX: &str = "README.md";

/// Folders that pages link to, and whose files go into the site as they are.
const BESIDE: [&str; 2] = ["schema", "images"];

const BOOK: &str = "\
[book]
title = \"mallow\"
description = \"A memory profiler for Linux: the guide\"
language = \"en\"
src = \"src\"

[build]
build-dir = \"html\"
create-missing = false

[output.html]
no-section-label = true
smart-punctuation = false

[output.html.print]
enable = false
";

/// Makes the site.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let target = workspaces::Workspace { folder: PathBuf::new() }.target_folder(root)?;
    let mdbook = mdbook(&target)?;
    let folder = target.join("site");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| cannot("remove", &folder, &error))?;
    }
    let pages = prepare(root, &folder)?;
    run::captured(Command::new(mdbook).arg("build").arg(&folder))?;
    let findings = html::check(&folder.join("html"))?;
    if let [first, ..] = &findings[..] {
        findings.iter().for_each(|finding| println!("    {finding}"));
        return Err(format!("{} links of the site lead nowhere, the first in {first}", findings.len()));
    }
    println!("    {pages} pages: {}", folder.join("html/index.html").display());
    Ok(())
}

/// The program, which cargo installs if this version of it is not there.
fn mdbook(target: &Path) -> Result<PathBuf, String> {
    let tools = target.join("tools");
    let mut install = Command::new("cargo");
    // Without a lock file of its own it would change with its libraries. Its server and its watcher are most of them.
    install.args(["install", "--quiet", "--locked", "--version", VERSION, "mdbook"]);
    install.args(["--no-default-features", "--features", "search", "--root"]).arg(&tools);
    install.env_remove("CARGO_TARGET_DIR");
    println!("    $ {}", run::as_typed(&install));
    run::captured(&mut install)?;
    Ok(tools.join("bin/mdbook"))
}

/// Writes what mdBook reads into a folder. Returns how many pages there are.
fn prepare(root: &Path, folder: &Path) -> Result<usize, String> {
    let guide = root.join(GUIDE);
    let index = read(&guide.join(INDEX))?;
    let chapters = markdown::chapters(&index);
    let mut missing: Vec<String> = names(&guide)?;
    missing.retain(|name| name != INDEX && !chapters.iter().any(|chapter| chapter.file == *name));
    if let Some(name) = missing.first() {
        return Err(format!("{GUIDE}/{INDEX} has no row for {name}; the site would not have it."));
    }
    write(&folder.join("book.toml"), BOOK.as_bytes())?;
    let source = folder.join("src");
    write(&source.join("SUMMARY.md"), markdown::summary(&chapters).as_bytes())?;
    for name in chapters.iter().map(|chapter| chapter.file.as_str()).chain([INDEX]) {
        let text = markdown::with_links_of_the_site(&read(&guide.join(name))?);
        write(&source.join(name), text.as_bytes())?;
    }
    for name in BESIDE {
        let from = root.join("docs").join(name);
        for file in names(&from)? {
            let path = from.join(&file);
            let bytes = fs::read(&path).map_err(|error| cannot("read", &path, &error))?;
            write(&source.join(name).join(file), &bytes)?;
        }
    }
    Ok(chapters.len() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_of_this_repository_becomes_a_book() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let pages = prepare(root, folder.path()).unwrap();
        assert_eq!(pages, names(&root.join(GUIDE)).unwrap().len());
        let source = folder.path().join("src");
        let summary = read(&source.join("SUMMARY.md")).unwrap();
        assert!(summary.contains("\n- [record](record.md)\n"), "{summary}");
        // Every link of every page leads to a file that the site has.
        for name in names(&source).unwrap() {
            for target in markdown::targets(&read(&source.join(&name)).unwrap()) {
                let path = target.split('#').next().unwrap();
                let is_there = path.contains("://") || source.join(path).exists();
                assert!(is_there, "{name}: {target}");
            }
        }
    }

    #[test]
    fn a_page_that_the_table_lacks_is_refused() {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in [("README.md", "| [a](a.md) | what? |\n"), ("a.md", ""), ("b.md", "")] {
            write(&root.path().join(GUIDE).join(name), text.as_bytes()).unwrap();
        }
        let sentence = prepare(root.path(), &root.path().join("site")).unwrap_err();
        assert_eq!(sentence, "docs/guide/README.md has no row for b.md; the site would not have it.");
    }
}
