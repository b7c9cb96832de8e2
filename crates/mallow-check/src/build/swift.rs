//! Swift: by `swiftc` alone, with the C header as a bridge.

use super::BuildError;
use super::place::{Place, Plan};
use super::step::{Rules, Step};
use super::tools::SWIFTC;
use crate::shims;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(super) fn plan(place: Place<'_>, source: &Path) -> Result<Plan, BuildError> {
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
    command.extend(inputs.iter().map(|input| OsString::from(place.shown(input))));
    command.extend(place.test.libs.iter().map(|library| format!("-l{library}").into()));
    inputs.push(header);
    let output: PathBuf = place.workdir.program(&place.test.name);
    command.extend(["-o".into(), output.clone().into_os_string()]);
    let version = tool.version.split_whitespace().skip_while(|word| *word != "version").nth(1);
    // Patches do not change what the library allocates.
    let runtime =
        version.map(|version| format!("swift {}", version.split('.').take(2).collect::<Vec<_>>().join(".")));
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
