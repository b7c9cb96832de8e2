//! Swift tests that import the modules of a package: a package of ours in the working folder, which depends on theirs and has a program for each test.
//!
//! It is written anew when it would differ, and the package manager decides what has to be built: what it read is known to nobody else.

use super::BuildError;
use super::place::{Place, Plan};
use super::step::{Rules, Step};
use super::swift_form::{has_run, runtime};
use super::tools::SWIFT;
use crate::manifest::{Language, Program, SwiftPackage, TestSpec};
use crate::shims;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The module with `mallow.h`.
const MODULE: &str = "CMallow";

pub(super) fn plan(place: Place<'_>, source: &Path, package: &SwiftPackage) -> Result<Plan, BuildError> {
    let test = &place.test.name;
    if !package.folder.join("Package.swift").is_file() {
        let folder = package.folder.display();
        return Err(BuildError::new(format!(
            "the test {test:?} is built with the Swift package in {folder}, where no Package.swift is; `package` in [swift] of mallow.toml names it"
        )));
    }
    // Its name is that of its folder, which `..` has none of.
    let package = &SwiftPackage {
        folder: package.folder.canonicalize().unwrap_or_else(|_| package.folder.clone()),
        ..package.clone()
    };
    let tool = place.tools.compiler(SWIFT, test)?;
    let folder = place.workdir.root().join("swift-package");
    write(place, package, &folder).map_err(|error| {
        BuildError::new(format!(
            "the package of the test {test:?} cannot be written to {}: {error}",
            folder.display()
        ))
    })?;
    let output = folder.join(".build/release").join(test);
    let mut command = tool.words.clone();
    command.extend(["build", "-c", "release", "-Xswiftc", "-g"].map(OsString::from));
    for flag in &place.test.flags {
        command.extend(["-Xswiftc".into(), OsString::from(flag)]);
    }
    for library in &place.test.libs {
        command.extend(["-Xlinker".into(), OsString::from(format!("-l{library}"))]);
    }
    command.extend(["--package-path".into(), folder.into_os_string(), "--product".into(), test.into()]);
    let runtime = runtime(&tool.version);
    let last = Step {
        purpose: format!("build {} with its package", place.shown(source).display()),
        command,
        directory: place.suite.folder.clone(),
        output: output.clone(),
        inputs: Vec::new(),
        rules: Rules::Own,
        version: tool.version.clone(),
    };
    Ok(Plan { pieces: Vec::new(), last: Some(last), prepared: place.of_program(output, runtime) })
}

/// The tests that are programs of the package, with their files.
fn programs(place: Place<'_>) -> Vec<(&TestSpec, &Path)> {
    let of = |test| {
        let test: &TestSpec = test;
        let Some(Program::Source(source, Language::Swift)) = &test.program else { return None };
        let text = fs::read_to_string(source).ok()?;
        has_run(&text).then_some((test, source.as_path()))
    };
    place.suite.tests.iter().filter_map(of).collect()
}

/// Writes the package whole: no target may be missing that it names.
fn write(place: Place<'_>, package: &SwiftPackage, folder: &Path) -> io::Result<()> {
    let programs = programs(place);
    put(&folder.join("Package.swift"), &manifest(&programs, package))?;
    let module = folder.join("Sources").join(MODULE);
    put(&module.join("include/mallow.h"), shims::HEADER.text)?;
    put(
        &module.join("include/module.modulemap"),
        &format!("module {MODULE} {{ header \"mallow.h\" export * }}\n"),
    )?;
    put(&module.join("module.c"), "#include \"mallow.h\"\n")?;
    for (test, source) in programs {
        let target = folder.join("Sources").join(&test.name);
        put(&target.join("mallow_measure.swift"), shims::MEASURE.text)?;
        put(&target.join("main.swift"), shims::MAIN.text)?;
        let sources = place.suite.gate.swift.sources.iter().chain(&test.sources);
        sources.map(PathBuf::as_path).chain([source]).try_for_each(|source| link(&target, source))?;
    }
    Ok(())
}

fn manifest(programs: &[(&TestSpec, &Path)], package: &SwiftPackage) -> String {
    let mut text = String::from(
        "// swift-tools-version:5.7\n// Written by `mallow check`: a program for each test in Swift.\nimport PackageDescription\n\n\
         let package = Package(\n    name: \"allocations\",\n    dependencies: [\n",
    );
    let _ = writeln!(text, "        .package(path: {:?}),", package.folder.to_string_lossy());
    for dependency in &package.dependencies {
        let _ = writeln!(text, "        {},", dependency.trim_end_matches(','));
    }
    let _ = writeln!(text, "    ],\n    targets: [\n        .target(name: {MODULE:?}),");
    let identity =
        package.folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut needs = format!("{MODULE:?}");
    for module in &package.modules {
        let _ = write!(needs, ", .product(name: {module:?}, package: {identity:?})");
    }
    for (test, _) in programs {
        let _ = writeln!(text, "        .executableTarget(name: {:?}, dependencies: [{needs}]),", test.name);
    }
    text.push_str("    ]\n)\n");
    text
}

/// Writes a file, unless it is there and the same: its time tells the package manager what has to be built.
fn put(path: &Path, text: &str) -> io::Result<()> {
    if fs::read(path).is_ok_and(|there| there == text.as_bytes()) {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    mallow_files::replace(path, text.as_bytes())
}

/// Puts a source into a target without a copy, so that debug information names the file that people know.
fn link(target: &Path, source: &Path) -> io::Result<()> {
    let link = target.join(source.file_name().unwrap_or_default());
    if fs::read_link(&link).is_ok_and(|to| to == source) {
        return Ok(());
    }
    if fs::symlink_metadata(&link).is_ok() {
        fs::remove_file(&link)?;
    }
    symlink(source, link)
}
