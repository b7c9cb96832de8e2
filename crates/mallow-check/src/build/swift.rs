//! Swift: by `swiftc` alone, with the C header as a bridge.
//!
//! A file with `func run(identifier:)` is a test of the form that SwiftNIO's framework runs: it has no start of its own, and calls `measure(identifier:)`,
//! which it finds in a file of ours. Where the manifest names a package, the package manager builds it ([`swift_package`]).

use super::BuildError;
use super::place::{Place, Plan};
use super::step::{Rules, Step};
use super::swift_form::{has_run, runtime};
use super::swift_package;
use super::tools::SWIFTC;
use crate::shims;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

pub(super) fn plan(place: Place<'_>, source: &Path) -> Result<Plan, BuildError> {
    let has_run = fs::read_to_string(source).is_ok_and(|text| has_run(&text));
    match &place.suite.gate.swift.package {
        Some(package) if has_run => swift_package::plan(place, source, package),
        _ => alone(place, source, has_run),
    }
}

fn alone(place: Place<'_>, source: &Path, has_run: bool) -> Result<Plan, BuildError> {
    let tool = place.tools.compiler(SWIFTC, &place.test.name)?;
    let header = place.workdir.root().join(shims::HEADER.path);
    let mut command = tool.words.clone();
    command.extend(["-O", "-g", "-import-objc-header"].map(OsString::from));
    command.push(header.clone().into());
    for map in place.prefix_maps("") {
        command.extend(["-debug-prefix-map".into(), map]);
    }
    command.extend(place.test.flags.iter().map(OsString::from));
    let mut inputs = vec![source.to_owned()];
    inputs.extend(place.test.sources.iter().cloned());
    if has_run {
        inputs.extend(place.suite.gate.swift.sources.iter().cloned());
        inputs.extend([shims::MEASURE, shims::MAIN].map(|shim| place.workdir.root().join(shim.path)));
    }
    command.extend(inputs.iter().map(|input| OsString::from(place.shown(input))));
    command.extend(place.test.libs.iter().map(|library| format!("-l{library}").into()));
    inputs.push(header);
    let output: PathBuf = place.workdir.program(&place.test.name);
    command.extend(["-o".into(), output.clone().into_os_string()]);
    let runtime = runtime(&tool.version);
    let last = Step {
        purpose: format!("compile {}", place.shown(source).display()),
        command,
        directory: place.suite.folder.clone(),
        output: output.clone(),
        inputs,
        rules: Rules::None,
        version: tool.version.clone(),
    };
    Ok(Plan { pieces: Vec::new(), last: Some(last), prepared: place.of_program(output, runtime) })
}
