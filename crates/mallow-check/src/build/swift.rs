//! Swift: by `swiftc` alone, with the C header as a bridge.
//!
//! A file with `func run(identifier:)` is a test of the form that SwiftNIO's framework runs: it has no start of its own, and calls `measure(identifier:)`,
//! which it finds in a file of ours. Where the manifest names a package, the package manager builds it ([`swift_package`]).

use super::BuildError;
use super::place::{Place, Plan};
use super::step::{Rules, Step};
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

/// Returns whether a file declares `func run(identifier:)`, however it is spaced; what is commented out does not.
pub(super) fn has_run(text: &str) -> bool {
    text.lines().any(|line| {
        let line: String = line.split("//").next().unwrap_or_default().split_whitespace().collect();
        line.contains("funcrun(identifier")
    })
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

/// The runtime of a compiler that tells its version so. Patches do not change what the library allocates.
pub(super) fn runtime(version: &str) -> Option<String> {
    let version = version.split_whitespace().skip_while(|word| *word != "version").nth(1)?;
    Some(format!("swift {}", version.split('.').take(2).collect::<Vec<_>>().join(".")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declaration_is_known_however_it_is_spaced() {
        for text in [
            "import NIOCore\nfunc run(identifier: String) {\n",
            "  public func  run( identifier : String ) {}",
            "fileprivate func helper() {}\nfunc run(identifier id: String) { }",
        ] {
            assert!(has_run(text), "{text}");
        }
        for text in
            ["// func run(identifier: String)", "run(identifier: \"a\")", "func run(name: String) {}", ""]
        {
            assert!(!has_run(text), "{text}");
        }
    }
}
