//! Packages of our crates, as a registry would hold them, in the order in which they are published: each behind those that it is
//! built on.

use super::Release;
use crate::run;
use crate::workspaces::{self, Workspace};
use cargo_metadata::{DependencyKind, Package};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A crate that is published.
#[derive(Clone, Debug)]
pub(super) struct Published {
    pub(super) name: String,
    workspace: Workspace,
    /// Those of ours that a registry must have before it.
    needs: Vec<String>,
}

/// Packages each, and writes the order beside them.
pub(super) fn package(release: &Release) -> Result<Vec<PathBuf>, String> {
    let folder = release.out.join("crates");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}.", folder.display()))?;
    let mut made = Vec::new();
    for published in in_order(release)? {
        let target = published.workspace.target_folder(&release.root)?;
        let mut cargo = published.workspace.cargo(&release.root, "package");
        // The list of exact versions would have to name crates that no registry has yet.
        cargo.args(["--quiet", "--no-verify", "--exclude-lockfile", "--package", &published.name]);
        run::captured(&mut cargo)?;
        let name = format!("{}-{}.crate", published.name, release.version);
        let to = folder.join(&name);
        std::fs::copy(target.join("package").join(&name), &to)
            .map_err(|error| format!("{} cannot be written: {error}.", to.display()))?;
        made.push(to);
    }
    let order: String = in_order(release)?.iter().map(|one| format!("{}\n", one.name)).collect();
    let path = folder.join("ORDER");
    std::fs::write(&path, order).map_err(|error| format!("{}: {error}.", path.display()))?;
    made.push(path);
    Ok(made)
}

/// Every crate that is published.
pub(super) fn in_order(release: &Release) -> Result<Vec<Published>, String> {
    let mut all = Vec::new();
    let is_ours = |workspace: &Workspace| !workspace.folder.starts_with("programs");
    for workspace in workspaces::all(&release.root)?.into_iter().filter(is_ours) {
        let metadata = workspace.metadata(&release.root, &["--no-deps"])?;
        for package in metadata.packages.iter().filter(|package| package.publish != Some(Vec::new())) {
            all.push(Published {
                name: package.name.to_string(),
                workspace: workspace.clone(),
                needs: needs(package),
            });
        }
    }
    sorted(all)
}

/// What it is built on and is ours. A dependency of tests without a version is left out of a package.
fn needs(package: &Package) -> Vec<String> {
    let any = cargo_metadata::semver::VersionReq::STAR;
    let counts = |it: &&cargo_metadata::Dependency| {
        it.path.is_some() && (it.kind != DependencyKind::Development || it.req != any)
    };
    package.dependencies.iter().filter(counts).map(|it| it.name.clone()).collect()
}

fn sorted(all: Vec<Published>) -> Result<Vec<Published>, String> {
    let mut left: BTreeMap<String, Published> = all.into_iter().map(|one| (one.name.clone(), one)).collect();
    let mut order: Vec<Published> = Vec::new();
    while !left.is_empty() {
        let is_ready = |one: &Published| !one.needs.iter().any(|name| left.contains_key(name));
        let Some(name) = left.values().find(|one| is_ready(one)).map(|one| one.name.clone()) else {
            let names: Vec<&str> = left.keys().map(String::as_str).collect();
            return Err(format!(
                "these crates need each other, and none can be published first: {}.",
                names.join(", ")
            ));
        };
        order.extend(left.remove(&name));
    }
    Ok(order)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, needs: &[&str]) -> Published {
        let needs = needs.iter().map(|name| (*name).to_owned()).collect();
        Published { name: name.to_owned(), workspace: Workspace { folder: PathBuf::new() }, needs }
    }

    #[test]
    fn a_crate_comes_behind_what_it_is_built_on() {
        let order = sorted(vec![one("a", &["b", "c"]), one("b", &["c"]), one("c", &["elsewhere"])]).unwrap();
        let names: Vec<&str> = order.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["c", "b", "a"]);
        let fault = sorted(vec![one("a", &["b"]), one("b", &["a"])]).unwrap_err();
        assert!(fault.ends_with("none can be published first: a, b."), "{fault}");
    }
}
