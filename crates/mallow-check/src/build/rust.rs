//! Rust: one file, its modules and the markers' crate, by `rustc` alone.

use super::BuildError;
use super::native::file_of;
use super::place::{Place, Plan};
use super::step::{Rules, Step, number_of, with_ending};
use super::tools::{RUSTC, Tool};
use crate::shims;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(super) fn plan(place: Place<'_>, source: &Path) -> Result<Plan, BuildError> {
    if let Some(other) = place.test.sources.first() {
        return Err(BuildError::new(format!(
            "the test {:?} cannot be built of {}: a Rust test takes in other files by `mod`",
            place.test.name,
            place.shown(other).display()
        )));
    }
    let tool = place.tools.compiler(RUSTC, &place.test.name)?;
    let flags: Vec<&String> = place.suite.gate.rust_flags.iter().chain(&place.test.flags).collect();
    let markers = markers(place, &tool, &flags);
    let mut command = tool.words.clone();
    if !flags.iter().any(|flag| flag.starts_with("--edition")) {
        command.extend(["--edition", "2021"].map(OsString::from));
    }
    command.extend(["-C", "opt-level=3", "-C", "debuginfo=2"].map(OsString::from));
    command.extend(flags.iter().map(OsString::from));
    command.push("--extern".into());
    let mut external = OsString::from("mallow_markers=");
    external.push(&markers.output);
    command.push(external);
    let mut inputs = vec![source.to_owned(), markers.output.clone()];
    libraries(place, &mut command, &mut inputs);
    command.extend(place.prefix_maps("--remap-path-prefix="));
    command.extend(["--crate-name".into(), crate_name(&place.test.name).into(), place.shown(source).into()]);
    let output = place.workdir.program(&place.test.name);
    let rules = with_ending(&output, ".d");
    command.push(emit(&rules, &output));
    let runtime = release(&tool.version).map(|release| format!("rustc {release}"));
    let last = Step {
        purpose: format!("compile {}", place.shown(source).display()),
        command,
        directory: place.suite.folder.clone(),
        output: output.clone(),
        inputs,
        rules: Rules::Compiler(rules),
        version: tool.version,
    };
    Ok(Plan { pieces: vec![markers], last: Some(last), prepared: place.of_program(output, runtime) })
}

fn libraries(place: Place<'_>, command: &mut Vec<OsString>, inputs: &mut Vec<PathBuf>) {
    for library in &place.test.libs {
        match file_of(library, place) {
            Some(file) => {
                let mut argument = OsString::from("link-arg=");
                argument.push(&file);
                command.extend(["-C".into(), argument]);
                inputs.push(file);
            }
            None if library.starts_with('-') => {
                command.extend(["-C".into(), format!("link-arg={library}").into()])
            }
            None => command.extend(["-l".into(), library.into()]),
        }
    }
}

/// The markers' crate, built once for each compiler and target.
fn markers(place: Place<'_>, tool: &Tool, flags: &[&String]) -> Step {
    let source = place.workdir.root().join(shims::CRATE.path);
    let mut command = tool.words.clone();
    command.extend(
        ["--edition", "2021", "--crate-type", "rlib", "--crate-name", "mallow_markers"].map(OsString::from),
    );
    command.extend(["-C", "opt-level=3", "-C", "debuginfo=1", "--cap-lints", "allow"].map(OsString::from));
    command.extend(target(flags));
    command.extend(place.prefix_maps("--remap-path-prefix="));
    command.push(source.clone().into());
    let folder = format!("objects/rust-{:016x}", number_of(&command, &tool.version));
    let output = place.workdir.root().join(folder).join("libmallow_markers.rlib");
    let rules = with_ending(&output, ".d");
    command.push(emit(&rules, &output));
    Step {
        purpose: "compile the markers for Rust".to_owned(),
        command,
        directory: place.workdir.root().to_owned(),
        output,
        inputs: vec![source],
        rules: Rules::Compiler(rules),
        version: tool.version.clone(),
    }
}

/// Options that a crate has to have in common with the program it is linked into.
fn target(flags: &[&String]) -> Vec<OsString> {
    let Some(at) = flags.iter().position(|flag| flag.starts_with("--target")) else {
        return Vec::new();
    };
    let length = if flags[at].contains('=') { 1 } else { 2 };
    flags[at..].iter().take(length).map(OsString::from).collect()
}

fn emit(rules: &Path, output: &Path) -> OsString {
    let mut emit = OsString::from("--emit=dep-info=");
    emit.push(rules);
    emit.push(",link=");
    emit.push(output);
    emit
}

fn crate_name(test: &str) -> String {
    let name: String =
        test.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
    if name.starts_with(|first: char| first.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// The first two numbers of `release: 1.88.0`: patches do not change what the library allocates.
fn release(version: &str) -> Option<String> {
    let release = version.lines().find_map(|line| line.strip_prefix("release: "))?;
    Some(release.split('.').take(2).collect::<Vec<_>>().join("."))
}
