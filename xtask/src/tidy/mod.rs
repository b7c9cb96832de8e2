//! The project's own rules, those that no compiler or lint knows.
//!
//! Every check looks at a [`Tree`] in memory and returns findings, so each has a test with an example that fails.

mod arrows;
mod chain;
mod circles;
mod folders;
mod hazards;
mod headings;
mod lengths;
mod licences;
mod links;
mod manual;
mod modules;
mod names;
mod packages;
mod places;
mod pure;
mod retired;
mod safety;
mod tokens;
mod writes;

use crate::workspaces;
use std::cell::OnceCell;
use std::fmt;
use std::path::{Path, PathBuf};
use tokens::Run;

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    /// The file, relative to the repository.
    path: PathBuf,
    /// Counted from 1; 0 where the whole file is meant.
    line: usize,
    /// What is wrong and what would be right.
    sentence: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path.display(), self.sentence),
            line => write!(f, "{}:{line}: {}", self.path.display(), self.sentence),
        }
    }
}

/// A file of the repository whose content is UTF-8 text.
#[derive(Debug)]
struct TextFile {
    /// Relative to the repository.
    path: PathBuf,
    text: String,
    runs: OnceCell<Vec<Run>>,
}

impl TextFile {
    fn new(path: PathBuf, text: String) -> TextFile {
        TextFile { path, text, runs: OnceCell::new() }
    }

    /// Its tokens as Rust.
    fn runs(&self) -> &[Run] {
        self.runs.get_or_init(|| tokens::runs(&self.text))
    }

    fn has_extension(&self, extensions: &[&str]) -> bool {
        let extension = self.path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| extensions.contains(&extension))
    }

    fn finding(&self, line: usize, sentence: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, sentence: sentence.into() }
    }
}

/// The repository as the checks see it: what is text, sorted by path.
struct Tree {
    files: Vec<TextFile>,
}

impl Tree {
    fn read(root: &Path) -> Result<Tree, String> {
        let mut files = Vec::new();
        for path in workspaces::tracked_files(root)? {
            let bytes = std::fs::read(root.join(&path))
                .map_err(|error| format!("{} cannot be read: {error}.", path.display()))?;
            // Fixtures of foreign formats are bytes; the rules are about what people read and write.
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(TextFile::new(path, text));
            }
        }
        Ok(Tree { files })
    }

    fn rust(&self) -> impl Iterator<Item = &TextFile> {
        self.files.iter().filter(|file| file.has_extension(&["rs"]))
    }

    fn get(&self, path: &str) -> Option<&TextFile> {
        self.files.iter().find(|file| file.path == Path::new(path))
    }

    #[cfg(test)]
    fn of(files: &[(&str, &str)]) -> Tree {
        let file = |(path, text): &(&str, &str)| TextFile::new(path.into(), (*text).to_owned());
        Tree { files: files.iter().map(file).collect() }
    }
}

/// Runs every check and prints what it found.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let tree = Tree::read(root)?;
    let members = packages::members(root)?;
    let mut findings = Vec::new();
    findings.extend(arrows::check(&tree, &members));
    let slim = packages::tree(root, &["--no-default-features"])?;
    findings.extend(arrows::check_trees(&packages::tree(root, &[])?, &slim));
    findings.extend(chain::check(&tree));
    findings.extend(circles::check(&tree, &members));
    findings.extend(manual::check(&tree, &members));
    findings.extend(folders::check(&tree));
    findings.extend(headings::check(&tree));
    findings.extend(links::check(&tree));
    findings.extend(lengths::check(&tree));
    findings.extend(names::check(&tree));
    findings.extend(safety::check(&tree));
    findings.extend(places::check(&tree));
    findings.extend(writes::check(&tree));
    findings.extend(pure::check(&tree, &members));
    findings.extend(retired::check(&tree));
    findings.extend(hazards::check(&tree));
    findings.extend(licences::check(&tree, &packages::everything(root)?));
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => {
            println!("    {} files and {} crates keep the rules", tree.files.len(), members.len());
            Ok(())
        }
        1 => Err("one rule is broken, in the line above.".to_owned()),
        count => Err(format!("{count} rules are broken, in the lines above.")),
    }
}
