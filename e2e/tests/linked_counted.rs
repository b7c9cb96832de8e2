//! Allocators that are linked in, compared with counters that are compiled into the program around them
//! (`programs/counted`): what a function allocated, by the functions on the stack, and how much of it is live, is the
//! same to the event, under every kind of build.

use e2e::run;
use e2e::session::metric;
use e2e::{Session, Workshop, stacks};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// How a program is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Build {
    /// With this level of optimisation.
    Level(u8),
    /// The whole program at once (link-time optimisation).
    Lto,
    /// Without its symbols, which are in a separate file.
    Stripped,
}

const ALL: [Build; 6] =
    [Build::Level(0), Build::Level(1), Build::Level(2), Build::Level(3), Build::Lto, Build::Stripped];

impl Build {
    fn level(self) -> u8 {
        if let Build::Level(level) = self { level } else { 2 }
    }
}

/// By the path of active functions: allocations, bytes, reallocations, temporary, and live blocks and bytes.
type Counts = BTreeMap<String, [u64; 6]>;

fn counted_by_program(stdout: &str) -> Counts {
    let row = |line: &str| {
        let mut words = line.split(' ');
        let path = words.next().unwrap().to_owned();
        let values: Vec<u64> = words.map(|word| word.parse().unwrap()).collect();
        (path, values.try_into().unwrap())
    };
    stdout.lines().map(row).collect()
}

fn counted_by_mallow(report: &Value) -> Counts {
    let mut counts = Counts::new();
    for site in report["sites"].as_array().unwrap() {
        let names = stacks::names(site);
        let last = names.iter().rev().map(|name| name.rsplit("::").next().unwrap());
        let path: Vec<&str> = last.filter(|name| name.starts_with("at_")).collect();
        if path.is_empty() {
            continue;
        }
        let row = counts.entry(path.join("/")).or_default();
        let names = ["allocations", "bytes", "reallocations", "temporary", "leaked_blocks", "leaked_bytes"];
        names.iter().zip(row).for_each(|(name, sum)| *sum += metric(site, name));
    }
    counts
}

/// A program's own count equals mallow's, under `record`; `stat` has the same totals.
#[track_caller]
fn is_exact(workshop: &Workshop, program: &Path, paths_min: usize) {
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    let recorded = session.record().well();
    let report = session.report(&[]);
    assert_eq!(
        (&report["complete"], report["warnings"].as_array().map(Vec::len)),
        (&true.into(), Some(0)),
        "{recorded}\n{:#}",
        report["warnings"]
    );
    let expected = counted_by_program(&recorded.stdout);
    assert!(expected.len() >= paths_min, "{recorded}");
    let found = counted_by_mallow(&report);
    let differ: Vec<_> =
        expected.keys().chain(found.keys()).filter(|path| expected.get(*path) != found.get(*path)).collect();
    let rows: Vec<_> = differ.iter().map(|path| (path, expected.get(*path), found.get(*path))).collect();
    assert!(rows.is_empty(), "{}: path, the program's count, mallow's: {rows:#?}", program.display());
    let (counted, stat) = session.stat();
    let _ = counted.well();
    for name in ["allocations", "bytes", "frees", "reallocations", "temporary", "leaked_bytes"] {
        assert_eq!(metric(&stat["runs"][0]["totals"], name), metric(&report["totals"], name), "{name}");
    }
}

/// Strips a program; its symbols are written to a file beside it.
fn stripped(program: &Path) -> PathBuf {
    let (bare, names) = (program.with_extension("stripped"), program.with_extension("debug"));
    let objcopy = |words: &[&str], from: &Path, to: &Path| {
        let _ = run::finish(run::command("objcopy").args(words).arg(from).arg(to)).well();
    };
    objcopy(&["--only-keep-debug"], program, &names);
    objcopy(&["--strip-all", &format!("--add-gnu-debuglink={}", names.display())], program, &bare);
    std::fs::remove_file(program).unwrap();
    bare
}

/// Builds the Rust program with the allocator of a feature.
fn rust_program(workshop: &Workshop, allocator: &str, build: Build) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("counted-{allocator}"));
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--locked", "--quiet", "--features", allocator, "--target-dir"]);
    cargo.arg(&target).env("CARGO_PROFILE_RELEASE_OPT_LEVEL", build.level().to_string());
    cargo.env("CARGO_PROFILE_RELEASE_LTO", if build == Build::Lto { "fat" } else { "false" });
    let _ = run::finish(cargo.current_dir(e2e::repository().join("programs/counted"))).well();
    let program = workshop.file(&format!("{allocator}-{build:?}"));
    std::fs::copy(target.join("release/counted"), &program).unwrap();
    if build == Build::Stripped { stripped(&program) } else { program }
}

/// Returns the folder of an allocator's C sources, which come with a package of the program.
fn source_of(package: &str) -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--locked", "--format-version", "1", "--all-features"]);
    let text = run::finish(cargo.current_dir(e2e::repository().join("programs/counted"))).well().stdout;
    let packages = e2e::session::json(&text)["packages"].take();
    let package = packages.as_array().unwrap().iter().find(|it| it["name"] == package).unwrap();
    Path::new(package["manifest_path"].as_str().unwrap()).parent().unwrap().to_owned()
}

/// An allocator for the C++ program.
#[derive(Clone, Debug)]
struct Library {
    name: &'static str,
    /// Compiler flags of the program.
    flags: Vec<String>,
    /// The allocator's own sources: the compiler, its arguments.
    sources: Vec<(&'static str, Vec<String>)>,
    /// Linker arguments.
    libs: &'static [&'static str],
}

impl Library {
    fn of_debian(name: &'static str, flags: &[&str], libs: &'static [&'static str]) -> Library {
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        Library { name, flags, sources: Vec::new(), libs }
    }

    /// Builds the program with it.
    fn program(&self, workshop: &Workshop, build: Build) -> PathBuf {
        let level = format!("-O{}", build.level());
        let mut common = vec!["-g", "-pthread", &level];
        if build == Build::Lto {
            common.push("-flto");
        }
        let mut objects = Vec::new();
        for (index, (compiler, words)) in self.sources.iter().enumerate() {
            let object = workshop.file(&format!("{}-{index}.o", self.name));
            let mut command = run::command(compiler);
            command.args(&common).args(words).arg("-c").arg("-o").arg(&object);
            let _ = run::finish(&mut command).well();
            objects.push(object);
        }
        let program = workshop.file(&format!("{}-{build:?}", self.name));
        let mut command = run::command("c++");
        command.args(&common).args(["-std=c++17", "-fno-builtin"]).args(&self.flags).arg("-o").arg(&program);
        command.arg(e2e::repository().join("programs/counted/counted.cpp")).args(&objects).args(self.libs);
        let _ = run::finish(&mut command).well();
        if build == Build::Stripped { stripped(&program) } else { program }
    }

    #[track_caller]
    fn is_exact(&self, builds: &[Build]) {
        let workshop = Workshop::new(&format!("counted-{}", self.name));
        for build in builds {
            is_exact(&workshop, &self.program(&workshop, *build), 18);
        }
    }
}

const JEMALLOC: &[&str] = &["-l:libjemalloc.a", "-lm", "-ldl"];
const TCMALLOC: &[&str] = &["-l:libtcmalloc_minimal.a"];
const AS_MALLOC: &[&str] = &["-DWITH_OPERATORS"];

/// Returns allocators in Debian's versions: jemalloc and tcmalloc through C's and C++'s functions and through their own, and mimalloc's own.
fn of_debian() -> [Library; 5] {
    [
        Library::of_debian("jemalloc-as-malloc", AS_MALLOC, JEMALLOC),
        Library::of_debian("jemalloc", &["-DJEMALLOC"], JEMALLOC),
        Library::of_debian("tcmalloc-as-malloc", AS_MALLOC, TCMALLOC),
        Library::of_debian("tcmalloc", &["-DTCMALLOC"], TCMALLOC),
        Library::of_debian("mimalloc", &["-DMIMALLOC"], &["-lmimalloc"]),
    ]
}

fn rpmalloc() -> Library {
    let source = source_of("rpmalloc-sys").join("rpmalloc/rpmalloc");
    let words =
        ["-D_GNU_SOURCE".to_owned(), "-w".to_owned(), source.join("rpmalloc.c").display().to_string()];
    let flags = vec!["-DRPMALLOC".to_owned(), format!("-I{}", source.display())];
    Library { name: "rpmalloc-of-c", flags, sources: vec![("gcc", words.into())], libs: &[] }
}

fn mimalloc() -> Library {
    let source = source_of("libmimalloc-sys").join("c_src/mimalloc/v3");
    let include = format!("-I{}", source.join("include").display());
    let words = ["-w".to_owned(), include.clone(), source.join("src/static.c").display().to_string()];
    Library {
        name: "mimalloc-of-c",
        flags: vec!["-DMIMALLOC".to_owned(), include],
        sources: vec![("gcc", words.into())],
        libs: &[],
    }
}

fn snmalloc() -> Library {
    let source = source_of("snmalloc-sys").join("upstream/src");
    let words = |file: &str| {
        let flags = [
            "-std=c++20",
            "-w",
            "-mcx16",
            "-DSNMALLOC_USE_WAIT_ON_ADDRESS=1",
            "-DSNMALLOC_STATIC_LIBRARY_PREFIX=sn_",
        ]
        .map(str::to_owned);
        let mut words = Vec::from(flags);
        words.push(format!("-I{}", source.display()));
        words.push(source.join("snmalloc/override").join(file).display().to_string());
        words
    };
    let sources = ["malloc.cc", "rust.cc"].map(|file| ("g++", words(file)));
    Library {
        name: "snmalloc-of-c",
        flags: vec!["-DSNMALLOC".to_owned()],
        sources: sources.into(),
        libs: &["-latomic"],
    }
}

#[test]
fn debians_allocators_are_counted_as_the_program_counts_them() {
    for (library, build) in of_debian().iter().zip([
        Build::Stripped,
        Build::Level(0),
        Build::Lto,
        Build::Level(3),
        Build::Level(1),
    ]) {
        library.is_exact(&[build]);
    }
}

#[test]
fn rpmalloc_of_c_and_of_rust_is_counted_as_the_program_counts_it() {
    rpmalloc().is_exact(&[Build::Level(2)]);
    let workshop = Workshop::new("counted-rpmalloc");
    is_exact(&workshop, &rust_program(&workshop, "rpmalloc", Build::Level(1)), 19);
}

#[test]
fn snmalloc_of_rust_is_counted_as_the_program_counts_it() {
    let workshop = Workshop::new("counted-snmalloc");
    is_exact(&workshop, &rust_program(&workshop, "snmalloc", Build::Lto), 19);
}

/// None of its functions has an entry that could be patched.
#[test]
fn an_allocator_that_was_optimised_as_one_with_its_callers_is_named() {
    let workshop = Workshop::new("counted-inlined");
    let program = rpmalloc().program(&workshop, Build::Lto);
    let session = Session::new(workshop.path(), &[&program.to_string_lossy()]);
    let recorded = session.record().well();
    // Only the size of its heap would show it.
    let said = "is linked with rpmalloc, not all of which can be seen (rpmalloc: the linker has put it into its callers)";
    assert!(recorded.stderr.contains(said), "{recorded}");
    assert_eq!(session.report(&[])["complete"], false);
}

#[test]
#[ignore = "every build of Debian's allocators: in `cargo xtask long`"]
fn debians_allocators_are_counted_under_every_build() {
    of_debian().iter().for_each(|library| library.is_exact(&ALL));
}

#[test]
#[ignore = "minutes of building: in `cargo xtask long`"]
fn allocators_from_their_c_sources_are_counted_under_every_build() {
    // All except the one whose functions were inlined.
    for library in [rpmalloc(), mimalloc(), snmalloc()] {
        library.is_exact(&ALL.map(|build| if build == Build::Lto { Build::Level(2) } else { build }));
    }
}

macro_rules! crates {
    ($($name:ident)*) => {
        $(
            #[test]
            #[ignore = "minutes of building: in `cargo xtask long`"]
            fn $name() {
                let workshop = Workshop::new(concat!("counted-all-", stringify!($name)));
                for build in ALL {
                    is_exact(&workshop, &rust_program(&workshop, stringify!($name), build), 19);
                }
            }
        )*
    };
}

/// Rust crates under every build.
mod crates {
    use super::*;

    crates! { jemalloc mimalloc rpmalloc snmalloc tcmalloc }
}
