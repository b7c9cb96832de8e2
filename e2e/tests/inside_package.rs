//! `mallow-alloc` can be published: its dependencies have versions, and no file outside of a package is read.

use e2e::Workshop;
use e2e::run;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns our packages by name, with their folders and their dependencies, of both workspaces.
fn packages() -> BTreeMap<String, Value> {
    let mut packages = BTreeMap::new();
    for manifest in ["Cargo.toml", "recorder/Cargo.toml"] {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path", manifest]);
        let said = run::finish(cargo.current_dir(e2e::repository())).well();
        for package in e2e::session::json(&said.stdout)["packages"].as_array().unwrap() {
            packages.insert(package["name"].as_str().unwrap().to_owned(), package.clone());
        }
    }
    packages
}

/// Returns the order of publication in CONTRIBUTING.md.
fn order() -> Vec<String> {
    let text = std::fs::read_to_string(e2e::repository().join("CONTRIBUTING.md")).unwrap();
    let start = text.find("published in this order:").unwrap();
    let list = text[start..].split_once('.').unwrap().0;
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the dependencies of a package that are ours, each with the required version.
fn uses(package: &Value) -> Vec<(String, String)> {
    let used = package["dependencies"].as_array().unwrap().iter();
    let built_on = used.filter(|used| used["kind"] != "dev" && used["path"].is_string());
    let text = |used: &Value, key: &str| used[key].as_str().unwrap().to_owned();
    built_on.map(|used| (text(used, "name"), text(used, "req"))).collect()
}

#[test]
fn each_crate_is_published_behind_those_that_it_is_built_on_and_asks_for_their_version() {
    let (packages, order) = (packages(), order());
    assert_eq!(order.last().unwrap(), "mallow-alloc");
    for (at, name) in order.iter().enumerate() {
        let package = &packages[name];
        assert_eq!(package["publish"], Value::Null, "{name} is not to be published");
        for (used, version) in uses(package) {
            assert!(order[..at].contains(&used), "{name} is published before {used}");
            assert_eq!(
                version,
                format!("={}", packages[&used]["version"].as_str().unwrap()),
                "{name}: {used}"
            );
        }
        let is_used = |other: &String| uses(&packages[other]).iter().any(|(used, _)| used == name);
        assert!(name == "mallow-alloc" || order[at..].iter().any(is_used), "{name} is for nobody");
    }
}

const MAIN: &str = r#"
#[global_allocator]
static ALLOC: mallow_alloc::Mallow<std::alloc::System> = mallow_alloc::Mallow::new(std::alloc::System);

fn main() {
    let profile = mallow_alloc::profile("packaged.mallow");
    drop(std::hint::black_box(vec![1u8; 100]));
    println!("{}", profile.stats().unwrap().allocations);
}
"#;

/// Packs a crate and unpacks it into a folder; returns its path.
fn unpacked(name: &str, manifest: &Path, folder: &Path) -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["package", "--quiet", "--offline", "--no-verify", "--allow-dirty", "--exclude-lockfile"]);
    let target = folder.join("target");
    cargo.arg("--manifest-path").arg(manifest).args(["--package", name, "--target-dir"]).arg(&target);
    let _ = run::finish(&mut cargo).well();
    let packed = target.join(format!("package/{name}-{}.crate", env!("CARGO_PKG_VERSION")));
    let _ = run::finish(run::command("tar").arg("-xzf").arg(&packed).arg("-C").arg(folder)).well();
    folder.join(format!("{name}-{}", env!("CARGO_PKG_VERSION")))
}

#[test]
#[ignore = "builds mallow-alloc once more: in `cargo xtask long`"]
fn a_program_is_built_from_the_packages_alone() {
    let workshop = Workshop::new("inside-package");
    let (packages, order) = (packages(), order());
    let mut manifest =
        "[package]\nname = \"packaged\"\nversion = \"1.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
        [dependencies]\nmallow-alloc = \"0.1\"\n\n[patch.crates-io]\n"
            .to_owned();
    for name in &order {
        let folder = Path::new(packages[name]["manifest_path"].as_str().unwrap());
        let place = unpacked(name, folder, workshop.path());
        manifest += &format!("{name} = {{ path = \"{}\" }}\n", place.display());
    }
    std::fs::create_dir(workshop.file("src")).unwrap();
    std::fs::write(workshop.file("src/main.rs"), MAIN).unwrap();
    std::fs::write(workshop.file("Cargo.toml"), manifest).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    let _ = run::finish(cargo.args(["build", "--quiet", "--offline"]).current_dir(workshop.path())).well();
    let said = run::finish(run::command("target/debug/packaged").current_dir(workshop.path())).well();
    assert_eq!(said.stdout, "1\n", "{said}");
    let report = run::finish(run::mallow().arg("report").arg(workshop.file("packaged.mallow"))).well();
    assert!(report.stdout.contains("packaged::main (main.rs:7)"), "{report}");
}
