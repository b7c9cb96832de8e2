//! Builds the recorder, which is a workspace of its own because it runs in other programs: without std, and with
//! another panic strategy. The libraries and the spawner are then packed, and embedded in the `mallow` binary.
//!
//! Its sources are in this package, as links into `recorder/`, so that nothing else is read. A package contains no
//! manifests but its own, so the sources are first laid out as a workspace. If debug information is wanted in a
//! checkout, they are built in their original place, so that messages of the compiler name the files
//! that people edit.
//!
//! It also determines the commit that is built: that of the checkout, or the one that cargo noted in a package. If
//! there is neither, the commit is unknown.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs, io};

/// The crates that are built, and the file that each produces.
const BUILT: [(&str, &str); 3] = [
    ("mallow-preload", "libmallow_preload.so"),
    ("mallow-timers", "libmallow_timers.so"),
    ("mallow-spawner", "mallow-spawner"),
];

/// These crates and their dependencies.
const CRATES: [&str; 6] =
    ["mallow-preload", "mallow-timers", "mallow-spawner", "mallow-family", "mallow-recorder", "mallow-wire"];

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    let links = folder("CARGO_MANIFEST_DIR")?.join("recorder");
    let out = folder("OUT_DIR")?;
    let target = variable("TARGET")?;
    let triple = recorder_target(&target, &variable("HOST")?)?;
    watch(&links);
    let mut cargo = nested_cargo(&folder("CARGO")?);
    let has_debug = env::var("DEBUG").is_ok_and(|outer| outer != "false");
    // In a package this is the file itself, in a checkout a link to the workspace's manifest.
    let workspace = read(links.join("workspace.toml"), fs::canonicalize)?;
    let is_checkout = workspace.ends_with("recorder/Cargo.toml");
    tell_version(&folder("CARGO_MANIFEST_DIR")?, is_checkout, &target)?;
    let built = if has_debug && is_checkout {
        cargo.arg("--locked").arg("--manifest-path").arg(&workspace);
        // It is the same for every profile and set of features, and `cargo xtask recorder` has built it there.
        workspace.with_file_name("target")
    } else {
        // It has no dependencies from a registry, so none is contacted.
        cargo.arg("--offline").arg("--manifest-path").arg(lay_out(&links, &out.join("sources"))?);
        out.join("recorder")
    };
    cargo.arg("--target-dir").arg(&built).args(["--target", &triple]);
    BUILT.iter().for_each(|(package, _)| _ = cargo.args(["--package", package]));
    if triple.ends_with("-musl") {
        // A library that every program can load must not be linked statically.
        cargo.env("CARGO_ENCODED_RUSTFLAGS", "-Ctarget-feature=-crt-static");
    }
    // Its symbols stay, also where mallow's own go: names of its functions are what reports leave out of stacks, and what tells the domains of Python's blocks.
    let status = cargo.status().map_err(|error| format!("cannot run cargo for the recorder: {error}"))?;
    if !status.success() {
        return Err(format!("the recorder does not build: cargo ended with {status}"));
    }
    let built = built.join(triple).join("release");
    BUILT.iter().try_for_each(|(_, file)| {
        let bytes = read(built.join(file), fs::read)?;
        write(&out.join(format!("{file}.zst")), &packed(&bytes)?)?;
        // An expression for `preload.rs`.
        let (length, checksum) = (bytes.len(), crc32fast::hash(&bytes));
        let packed = format!(
            "Packed {{ zstd: include_bytes!(\"{file}.zst\"), bytes: {length}, checksum: {checksum:#x} }}\n"
        );
        write(&out.join(format!("{file}.rs")), packed.as_bytes())
    })
}

/// Packs a file to a third of its size. It is the same for the same bytes, as packages are.
fn packed(bytes: &[u8]) -> Result<Vec<u8>, String> {
    const LEVEL: i32 = 22;
    zstd::bulk::compress(bytes, LEVEL).map_err(|error| format!("the recorder cannot be packed: {error}"))
}

/// Passes on what `mallow version` prints. It has no date, so that two builds of a commit are identical.
fn tell_version(package: &Path, is_checkout: bool, target: &str) -> Result<(), String> {
    let commit = if is_checkout { commit_of_checkout(package) } else { commit_of_package(package) };
    let version = variable("CARGO_PKG_VERSION")?;
    let line = commit.as_ref().map(|commit| format!("{version} ({})", &commit[..12])).unwrap_or(version);
    println!("cargo::rustc-env=MALLOW_VERSION={line}");
    println!("cargo::rustc-env=MALLOW_COMMIT={}", commit.unwrap_or_default());
    println!("cargo::rustc-env=MALLOW_TARGET={target}");
    Ok(())
}

/// `None` without git, if git does not trust the folder's owner, and if our files are part of another repository.
fn commit_of_checkout(package: &Path) -> Option<String> {
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        // The build may run in a hook of another repository.
        git.args(words).current_dir(package).env_remove("GIT_DIR").env_remove("GIT_WORK_TREE");
        let output = git.output().ok()?;
        let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
        Some(text.trim().to_owned())
    };
    git(&["rev-parse", "--show-prefix"]).filter(|place| place == "crates/mallow-cli/")?;
    // Both change with the commit. A file that does not exist must not be watched: cargo would rebuild each time.
    for file in ["HEAD", "logs/HEAD"] {
        let path = git(&["rev-parse", "--git-path", file]).map(|path| package.join(path));
        if let Some(path) = path.filter(|path| path.exists()) {
            println!("cargo::rerun-if-changed={}", path.display());
        }
    }
    git(&["rev-parse", "HEAD"]).filter(|commit| is_commit(commit))
}

/// Reads what cargo notes in a package that it creates from a checkout.
fn commit_of_package(package: &Path) -> Option<String> {
    let note = fs::read_to_string(package.join(".cargo_vcs_info.json")).ok()?;
    let behind = note.split_once("\"sha1\"")?.1;
    behind.split('"').nth(1).filter(|commit| is_commit(commit)).map(str::to_owned)
}

fn is_commit(text: &str) -> bool {
    text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the target of the recorder. It uses no versioned symbol of the C library, so a build with this machine's C
/// library runs with every program of the target.
fn recorder_target(target: &str, host: &str) -> Result<String, String> {
    let is_recorded = |triple: &str| {
        triple.starts_with("x86_64-") && ["-linux-gnu", "-linux-musl"].iter().any(|end| triple.ends_with(end))
    };
    if !is_recorded(target) {
        return Err(format!(
            "mallow records programs on Linux on x86-64. There is no recorder for {target}, and a mallow without one is not built."
        ));
    }
    Ok(if is_recorded(host) { host } else { target }.to_owned())
}

/// Requests a rebuild when a source changes: the targets of the links, since a link itself does not change.
fn watch(links: &Path) {
    let parts = CRATES
        .iter()
        .flat_map(|name| ["manifest.toml", "src", "build.rs"].map(|part| links.join(name).join(part)));
    for path in parts.chain([links.join("workspace.toml")]).filter_map(|link| fs::canonicalize(link).ok()) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::rerun-if-changed=build.rs");
}

/// Lays the sources out as one workspace, and returns the path of its manifest. No path leads out of it, so the
/// result does not depend on its location.
fn lay_out(links: &Path, tree: &Path) -> Result<PathBuf, String> {
    let manifest = tree.join("Cargo.toml");
    place(&links.join("workspace.toml"), &manifest)?;
    for name in CRATES {
        let (from, to) = (links.join(name), tree.join(name));
        place_all(&from.join("src"), &to.join("src"))?;
        if from.join("build.rs").exists() {
            place(&from.join("build.rs"), &to.join("build.rs"))?;
        }
        let text = read(from.join("manifest.toml"), fs::read_to_string)?;
        // Dependencies of tests would have to be looked up in a registry.
        let text = text.split("[dev-dependencies]").next().unwrap_or_default();
        write(&to.join("Cargo.toml"), text.replace("../../crates/", "../").as_bytes())?;
    }
    Ok(manifest)
}

fn place_all(from: &Path, to: &Path) -> Result<(), String> {
    for entry in read(from.to_owned(), fs::read_dir)? {
        let entry = entry.map_err(|error| format!("cannot list {}: {error}", from.display()))?.path();
        let name = entry.file_name().unwrap_or_default();
        if entry.is_dir() { place_all(&entry, &to.join(name))? } else { place(&entry, &to.join(name))? }
    }
    Ok(())
}

fn place(from: &Path, to: &Path) -> Result<(), String> {
    write(to, &read(from.to_owned(), fs::read)?)
}

/// Does not touch a file with the same contents: cargo compares modification times.
fn write(to: &Path, bytes: &[u8]) -> Result<(), String> {
    if fs::read(to).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let parent = to.parent().map_or(Ok(()), fs::create_dir_all);
    parent
        .and_then(|()| fs::write(to, bytes))
        .map_err(|error| format!("cannot write {}: {error}", to.display()))
}

fn read<T>(path: PathBuf, reader: impl FnOnce(PathBuf) -> io::Result<T>) -> Result<T, String> {
    let shown = path.display().to_string();
    reader(path).map_err(|error| format!("cannot read {shown}: {error}"))
}

fn folder(name: &str) -> Result<PathBuf, String> {
    env::var_os(name).map(PathBuf::from).ok_or_else(|| format!("cargo did not set {name}"))
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("cargo did not set {name}"))
}

/// Returns a cargo command without the variables that the outer cargo sets for its build scripts: flags for the outer
/// workspace (coverage, sanitizers, another linker) would affect a library that is loaded into other programs.
fn nested_cargo(cargo: &Path) -> Command {
    let mut command = Command::new(cargo);
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let kept =
            ["CARGO_HOME", "CARGO_NET_OFFLINE", "CARGO_BUILD_JOBS", "CARGO_TERM_COLOR", "CARGO_HTTP_CAINFO"];
        let is_cargos =
            text.starts_with("CARGO") && !kept.contains(&&*text) && !text.starts_with("CARGO_REGISTRIES_");
        let is_compilers = text.starts_with("RUSTC") || ["RUSTFLAGS", "RUSTDOCFLAGS"].contains(&&*text);
        if is_cargos || is_compilers {
            command.env_remove(&name);
        }
    }
    command.args(["build", "--release"]);
    command
}
