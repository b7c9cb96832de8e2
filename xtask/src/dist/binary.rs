//! The program that is handed out: one static file for every Linux on x86-64, the same bytes wherever it is built.
//!
//! What it was built from leaves no trace of where that lay: paths in it begin at the repository or at a crate's name. It must never
//! be handed out when it asks for a library, is too large, or names a folder of the machine that built it.

use super::Release;
use crate::run;
use crate::workspaces::Workspace;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What it is built for: a C library that is linked in whole.
pub(super) const TARGET: &str = crate::packages::STATIC_TARGET;

/// Its size is what people wait for.
const BYTES_MAX: u64 = 12 * 1000 * 1000;

/// The standard library is built with the program, as small as it is: what sorts is not instantiated at four kilobytes for each type, and panics have no
/// reader of debug information with them, of which there is none (1.2 MB together). Its source comes with the compiler, and is of the
/// same version. Cargo calls this unstable: [`UNSTABLE`].
const STANDARD_LIBRARY: [&str; 2] =
    ["-Zbuild-std=std,panic_unwind", "-Zbuild-std-features=optimize_for_size"];

/// What allows it to a stable compiler.
const UNSTABLE: (&str, &str) = ("RUSTC_BOOTSTRAP", "1");

/// How it is linked. Relocations of a program that can lie anywhere are bits in place of 24 bytes each (0.4 MB; musl applies them since
/// 1.2.4), and functions whose code is the same are one. Rust's own linker can do that, which the compiler brings along.
const LINKING: [&str; 3] =
    ["-Clink-arg=-fuse-ld=lld", "-Clink-arg=-Wl,-z,pack-relative-relocs", "-Clink-arg=-Wl,--icf=all"];

/// How libraries in C are compiled. Of zstd's ways to compress those are left out that begin above level 3, which is the highest that is
/// used, and of its two decoders of literals the one that takes two at once, which was no faster on executables; and no C function is unwound through.
const C_FLAGS: [&str; 8] = [
    "-DZSTD_EXCLUDE_GREEDY_BLOCK_COMPRESSOR",
    "-DZSTD_EXCLUDE_LAZY_BLOCK_COMPRESSOR",
    "-DZSTD_EXCLUDE_LAZY2_BLOCK_COMPRESSOR",
    "-DZSTD_EXCLUDE_BTLAZY2_BLOCK_COMPRESSOR",
    "-DZSTD_EXCLUDE_BTOPT_BLOCK_COMPRESSOR",
    "-DZSTD_EXCLUDE_BTULTRA_BLOCK_COMPRESSOR",
    "-DHUF_FORCE_DECOMPRESS_X1",
    "-fno-asynchronous-unwind-tables",
];

/// Builds and checks it.
pub(super) fn build(release: &Release) -> Result<PathBuf, String> {
    have_target()?;
    let (home, compiler) = (cargo_home()?, sysroot(release)?);
    let folder = |path: &Path| path.display().to_string();
    // The last that fits is taken. A registry's folder has the address of its index in its name: 50 bytes in each of 500 paths.
    let mut places =
        vec![(folder(&release.root), "mallow"), (folder(&home), "cargo"), (folder(&compiler), "rustc")];
    places.push((folder(&compiler.join("lib/rustlib/src/rust")), "rustc"));
    places.extend(registries(&home).iter().map(|registry| (folder(registry), "cargo")));
    let remap = |option: &str| -> Vec<String> {
        places.iter().map(|(from, to)| format!("{option}={from}=/{to}")).collect()
    };
    let mut cargo = release.tool("cargo");
    cargo.current_dir(&release.root);
    cargo.args(["build", "--locked", "--profile", "dist", "--package", "mallow", "--target", TARGET]);
    cargo.args(STANDARD_LIBRARY).env(UNSTABLE.0, UNSTABLE.1);
    cargo.env_remove("RUSTFLAGS").env("CARGO_INCREMENTAL", "0");
    let mut flags = remap("--remap-path-prefix");
    flags.push(format!("-Clink-arg=-B{}", rusts_linker(release, &compiler)?.display()));
    flags.extend(LINKING.map(str::to_owned));
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    // For libraries in C. Debian's wrapper of gcc for musl is named by the target, as the name of a cross compiler is not there.
    cargo.env("CC_x86_64_unknown_linux_musl", "musl-gcc");
    let c_flags = [remap("-ffile-prefix-map"), C_FLAGS.map(str::to_owned).to_vec()].concat();
    cargo.env("CFLAGS_x86_64_unknown_linux_musl", c_flags.join(" "));
    run::shown(&mut cargo)?;
    let target = Workspace { folder: PathBuf::new() }.target_folder(&release.root)?;
    let binary = target.join(TARGET).join("dist/mallow");
    let names = registries(&home)
        .into_iter()
        .filter_map(|registry| registry.file_name().map(|name| name.display().to_string()));
    let unnamed: Vec<String> =
        [folder(&release.root), folder(&home), folder(&compiler)].into_iter().chain(names).collect();
    // `cargo mallow` lies beside it.
    for program in [&binary, &binary.with_file_name("cargo-mallow")] {
        let faults = faults(program, &unnamed)?;
        if !faults.is_empty() {
            return Err(format!("{} is not fit to be handed out: {}", program.display(), faults.join(" ")));
        }
    }
    Ok(binary)
}

/// Where sources of registries lie, each in a folder of its own.
fn registries(home: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(home.join("registry/src")).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
    folders.sort();
    folders
}

/// What is wrong with it.
fn faults(binary: &Path, folders: &[String]) -> Result<Vec<String>, String> {
    let bytes = super::stage::read(binary)?;
    let mut faults = Vec::new();
    let dynamic =
        run::captured(Command::new("readelf").args(["--program-headers", "--dynamic"]).arg(binary))?;
    if dynamic.contains("INTERP") || dynamic.contains("(NEEDED)") {
        faults.push("it is not static.".to_owned());
    }
    if bytes.len() as u64 > BYTES_MAX {
        faults.push(format!("it has {} bytes, more than {BYTES_MAX}.", bytes.len()));
    }
    let found = folders.iter().filter(|it| contains(&bytes, it.as_bytes()));
    faults.extend(found.map(|folder| format!("it names {folder}.")));
    Ok(faults)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// What the compiler says of itself.
fn compiler_says(release: &Release, what: &str) -> Result<String, String> {
    let said = run::captured(Command::new("rustc").args(["--print", what]).current_dir(&release.root))?;
    Ok(said.trim().to_owned())
}

/// The folder of the compiler, with its libraries and their source.
fn sysroot(release: &Release) -> Result<PathBuf, String> {
    compiler_says(release, "sysroot").map(PathBuf::from)
}

/// The folder in which gcc finds the linker that comes with the compiler.
fn rusts_linker(release: &Release, compiler: &Path) -> Result<PathBuf, String> {
    let host = compiler_says(release, "host-tuple")?;
    let folder = compiler.join("lib/rustlib").join(host).join("bin/gcc-ld");
    if folder.join("ld.lld").is_file() {
        return Ok(folder);
    }
    Err(format!("{} has no ld.lld, which the compiler should have brought along.", folder.display()))
}

/// Has the target's own objects, and the source of the standard library, brought along where they are not there.
fn have_target() -> Result<(), String> {
    for (kind, name) in [("target", TARGET), ("component", "rust-src")] {
        let installed = run::captured(Command::new("rustup").args([kind, "list", "--installed"]))?;
        if !installed.lines().any(|line| line == name) {
            run::captured(Command::new("timeout").args(["300", "rustup", kind, "add", name]))?;
        }
    }
    Ok(())
}

/// Where cargo keeps the sources of others.
pub(super) fn cargo_home() -> Result<PathBuf, String> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from).or_else(home);
    home.ok_or_else(|| "neither CARGO_HOME nor HOME says where cargo keeps its sources.".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_not_be_handed_out_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("a.c"), folder.path().join("a"));
        std::fs::write(&source, "#include <stdio.h>\nint main(void) { return puts(__FILE__) < 0; }\n")
            .unwrap();
        let build = |options: &[&str]| {
            run::captured(Command::new("gcc").args(options).arg(&source).arg("-o").arg(&program)).unwrap();
            faults(&program, &[folder.path().display().to_string()]).unwrap()
        };
        assert_eq!(build(&[]).len(), 2);
        let remap = format!("-ffile-prefix-map={}=/mallow", folder.path().display());
        assert_eq!(build(&["-static", &remap]), Vec::<String>::new());
    }
}
