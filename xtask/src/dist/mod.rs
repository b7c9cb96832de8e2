//! `cargo xtask dist`: what is handed out, from the static program to each package that holds it. `--try` installs each in a root
//! where nothing else is.
//!
//! Everything is made from the commit alone: the time in packages is the commit's, and two builds in two folders give the same bytes,
//! which `--twice` holds. A package must never hold what was not built here.

mod binary;
mod crates;
mod deb;
mod image;
mod licences;
mod npm;
mod roots;
mod stage;
mod tarball;
mod tree;
mod trial;
mod twice;
mod wheel;

use crate::workspaces::Workspace;
use crate::{packages, run};
use std::path::{Path, PathBuf};
use std::process::Command;
use tree::Tree;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Build everything into a folder.
    Build { output: Option<PathBuf> },
    /// Install in clean roots what was built; empty for every way.
    Try { only: Vec<String> },
    /// Build here and in another folder, and compare.
    Twice,
}

impl Plan {
    /// Reads `[--output FOLDER] | --try [WAY…] | --twice`.
    pub(crate) fn parse(words: &[&str]) -> Result<Plan, String> {
        match words {
            [] => Ok(Plan::Build { output: None }),
            ["--output", folder] => Ok(Plan::Build { output: Some(folder.into()) }),
            ["--twice"] => Ok(Plan::Twice),
            ["--try", ways @ ..] => {
                if let Some(way) = ways.iter().find(|way| !trial::WAYS.iter().any(|(name, _)| name == *way)) {
                    let known: Vec<&str> = trial::WAYS.iter().map(|(name, _)| *name).collect();
                    return Err(format!("there is no way `{way}` to try; there are: {}.", known.join(", ")));
                }
                Ok(Plan::Try { only: ways.iter().map(|way| (*way).to_owned()).collect() })
            }
            _ => Err(format!("`dist` does not understand `{}`.", words.join(" "))),
        }
    }
}

/// Does it.
pub(crate) fn run(root: &Path, plan: &Plan) -> Result<(), String> {
    match plan {
        Plan::Build { output } => {
            let mut release = Release::of(root)?;
            if let Some(output) = output {
                release.out =
                    std::path::absolute(output).map_err(|error| format!("{}: {error}.", output.display()))?;
            }
            build(&release)
        }
        Plan::Try { only } => trial::run(&Release::of(root)?, only),
        Plan::Twice => {
            let release = Release::of(root)?;
            twice::has_no_changes(&release.root)?;
            build(&release)?;
            twice::compare(&release)
        }
    }
}

/// What is handed out together.
#[derive(Clone, Debug)]
pub(crate) struct Release {
    /// The checkout.
    root: PathBuf,
    version: String,
    /// The time that everything in packages has.
    epoch_s: u64,
    /// Where packages go.
    out: PathBuf,
}

impl Release {
    /// That of a checkout; its packages go into `target/packages`.
    fn of(root: &Path) -> Result<Release, String> {
        let workspace = Workspace { folder: PathBuf::new() };
        let metadata = workspace.metadata(root, &["--no-deps"])?;
        let own = metadata.packages.iter().find(|package| package.name == "mallow");
        let version = own.ok_or("There is no package mallow.")?.version.to_string();
        let git = run::captured(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root));
        let epoch = std::env::var("SOURCE_DATE_EPOCH").or(git)?;
        let epoch_s =
            epoch.trim().parse().map_err(|_| format!("`{}` is no time of a commit.", epoch.trim()))?;
        let out = metadata.target_directory.as_std_path().join("packages");
        Ok(Release { root: root.to_owned(), version, epoch_s, out })
    }

    /// A program whose work depends on neither this machine's language nor its clock.
    fn tool(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("LC_ALL", "C").env("TZ", "UTC").env("SOURCE_DATE_EPOCH", self.epoch_s.to_string());
        command
    }
}

fn build(release: &Release) -> Result<(), String> {
    packages::ensure_for_dist()?;
    let binary = binary::build(release)?;
    let tree = Tree::gather(release, &binary)?;
    stage::Stage::new(release.out.clone())?;
    let mut made = of_program(release, &tree)?;
    made.extend(crates::package(release)?);
    println!();
    for path in made {
        let bytes = std::fs::metadata(&path).map_or(0, |meta| meta.len());
        println!("{:>11}  {}", bytes, path.display());
    }
    Ok(())
}

/// Every package that holds the program.
fn of_program(release: &Release, tree: &Tree) -> Result<Vec<PathBuf>, String> {
    let mut made = vec![tarball::build(release, tree)?, deb::build(release, tree)?];
    made.extend(wheel::build(release, tree)?);
    made.push(npm::build(release, tree)?);
    made.push(image::build(release)?);
    Ok(made)
}
