//! What is installed below a prefix such as `/usr/local`: the program, its man pages and completions, scripts for CI, and the
//! licences.

use super::Release;
use super::licences;
use super::stage::{Kind, Stage, read};
use crate::run;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A shell, and where it looks for what completes a command's words, below a prefix.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/mallow"),
    ("zsh", "share/zsh/site-functions/_mallow"),
    ("fish", "share/fish/vendor_completions.d/mallow.fish"),
];

/// Where man pages are.
const PAGES: &str = "share/man/man1";

/// Where the rest of the documentation is.
pub(super) const DOC: &str = "share/doc/mallow";

/// Where a job's scripts are: what a component of GitLab's runs comes with the program.
const SCRIPTS: &str = "share/mallow/ci";

/// Files of the repository that are for everybody who has the program.
const DOCUMENTS: [&str; 5] = ["README.md", "CHANGELOG.md", "NOTICE", "LICENSE-MIT", "LICENSE-APACHE"];

/// The files, by their place below the prefix.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) files: Vec<(PathBuf, Vec<u8>, Kind)>,
}

impl Tree {
    /// Asks the program for what it describes itself, and reads the rest from the repository.
    pub(super) fn gather(release: &Release, program: &Path) -> Result<Tree, String> {
        let mut tree = Tree { files: Vec::new() };
        tree.add("bin/mallow", read(program)?, Kind::Program);
        tree.add("bin/cargo-mallow", read(&program.with_file_name("cargo-mallow"))?, Kind::Program);
        for (shell, place) in SHELLS {
            let text = run::captured(Command::new(program).args(["completions", shell]))?;
            tree.add(place, text.into_bytes(), Kind::Data);
        }
        let pages = tempfile::tempdir().map_err(|error| format!("there is no temporary folder: {error}."))?;
        run::captured(Command::new(program).arg("man-pages").arg(pages.path()))?;
        tree.add_folder(PAGES, pages.path())?;
        tree.add_folder(SCRIPTS, &release.root.join("integrations/ci"))?;
        for name in DOCUMENTS {
            tree.add(Path::new(DOC).join(name), read(&release.root.join(name))?, Kind::Data);
        }
        for (name, bytes) in licences::files(&release.root)? {
            tree.add(Path::new(DOC).join(name), bytes, Kind::Data);
        }
        Ok(tree)
    }

    /// Puts all of it below a folder of the stage.
    pub(super) fn put_into(&self, stage: &Stage, prefix: &str) -> Result<(), String> {
        self.files
            .iter()
            .try_for_each(|(place, bytes, kind)| stage.put(Path::new(prefix).join(place), bytes, *kind))
    }

    /// A file of it.
    pub(super) fn get(&self, place: &Path) -> Result<&[u8], String> {
        let found = self.files.iter().find(|(path, ..)| path == place);
        found.map(|(_, bytes, _)| &bytes[..]).ok_or_else(|| format!("{} is not made.", place.display()))
    }

    /// Adds the files of a folder, in their order.
    fn add_folder(&mut self, place: &str, folder: &Path) -> Result<(), String> {
        let mut paths: Vec<PathBuf> = fs::read_dir(folder)
            .map_err(|error| format!("{} cannot be listed: {error}.", folder.display()))?
            .flatten()
            .map(|entry| entry.path())
            .collect();
        paths.sort();
        for path in paths {
            self.add(Path::new(place).join(path.file_name().unwrap_or_default()), read(&path)?, Kind::Data);
        }
        Ok(())
    }

    fn add(&mut self, place: impl Into<PathBuf>, bytes: Vec<u8>, kind: Kind) {
        self.files.push((place.into(), bytes, kind));
    }
}
