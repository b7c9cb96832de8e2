//! C and C++: each file to an object of its own, which tests with the same flags share, then linked.

use super::BuildError;
use super::place::{Place, Plan};
use super::step::{Rules, Step, number_of, with_ending};
use super::tools::{CC, CXX, Tool};
use crate::manifest::Language;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub(super) fn plan(place: Place<'_>, source: &Path, language: Language) -> Result<Plan, BuildError> {
    let mut pieces = Vec::new();
    let mut ready = Vec::new();
    let mut has_cxx = false;
    let shared = place.suite.gate.sources.iter().chain(&place.test.sources);
    for file in std::iter::once(source).chain(shared.map(PathBuf::as_path)) {
        match Language::of(file) {
            Some(of_file @ (Language::C | Language::Cxx)) => {
                has_cxx |= of_file == Language::Cxx;
                pieces.push(compile(place, file, of_file, of_file == language)?);
            }
            _ if is_object(file) => ready.push(file.to_owned()),
            _ => {
                let sentence = format!(
                    "the test {:?} cannot be built of {}: sources of {} tests are C, C++, .o and .a files",
                    place.test.name,
                    place.shown(file).display(),
                    language.word()
                );
                return Err(BuildError::new(sentence));
            }
        }
    }
    let language = if has_cxx { Language::Cxx } else { language };
    let last = link(place, language, &pieces, ready)?;
    let prepared = place.of_program(last.output.clone(), Some("native".to_owned()));
    Ok(Plan { pieces, last: Some(last), prepared })
}

fn is_object(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ["o", "a", "so"].iter().any(|known| ending == *known))
}

fn compiler(place: Place<'_>, language: Language) -> Result<Tool, BuildError> {
    let kind = if language == Language::Cxx { CXX } else { CC };
    place.tools.compiler(kind, &place.test.name)
}

/// The compiler with the flags that compiling and linking share. A test's own flags are for its own language.
fn begin(place: Place<'_>, tool: &Tool, language: Language, is_own: bool) -> Vec<OsString> {
    let mut command = tool.words.clone();
    let gate = &place.suite.gate;
    let flags = if language == Language::Cxx {
        command.push("-std=c++17".into());
        &gate.cxx_flags
    } else {
        &gate.c_flags
    };
    command.extend(["-O2", "-g", "-pthread"].map(OsString::from));
    command.extend(flags.iter().map(OsString::from));
    if is_own {
        command.extend(place.test.flags.iter().map(OsString::from));
    }
    command
}

fn compile(place: Place<'_>, file: &Path, language: Language, is_own: bool) -> Result<Step, BuildError> {
    let tool = compiler(place, language)?;
    let mut command = begin(place, &tool, language, is_own);
    command.push("-I".into());
    command.push(place.workdir.include().into());
    command.extend(place.prefix_maps("-ffile-prefix-map="));
    command.push("-c".into());
    command.push(place.shown(file).into());
    let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let name = format!("{stem}-{:016x}.o", number_of(&command, &tool.version));
    let output = place.workdir.root().join("objects").join(name);
    let rules = with_ending(&output, ".d");
    command.extend(["-MD".into(), "-MF".into(), rules.clone().into_os_string()]);
    command.extend(["-o".into(), output.clone().into_os_string()]);
    Ok(Step {
        purpose: format!("compile {}", place.shown(file).display()),
        command,
        directory: place.suite.folder.clone(),
        output,
        inputs: vec![file.to_owned()],
        rules: Rules::Compiler(rules),
        version: tool.version,
    })
}

fn link(
    place: Place<'_>,
    language: Language,
    pieces: &[Step],
    ready: Vec<PathBuf>,
) -> Result<Step, BuildError> {
    let tool = compiler(place, language)?;
    let mut command = begin(place, &tool, language, true);
    let mut inputs: Vec<PathBuf> = pieces.iter().map(|piece| piece.output.clone()).collect();
    inputs.extend(ready);
    command.extend(inputs.iter().map(|input| input.clone().into_os_string()));
    for library in &place.test.libs {
        match file_of(library, place) {
            Some(file) => {
                command.push(file.clone().into());
                inputs.push(file);
            }
            None if library.starts_with('-') => command.push(library.into()),
            None => command.push(format!("-l{library}").into()),
        }
    }
    let output = place.workdir.program(&place.test.name);
    let rules = with_ending(&output, ".d");
    command.extend(["-o".into(), output.clone().into_os_string()]);
    Ok(Step {
        purpose: format!("link the test {:?}", place.test.name),
        command,
        directory: place.suite.folder.clone(),
        output,
        inputs,
        rules: Rules::Linker(rules),
        version: tool.version,
    })
}

/// The file that a library's word names, from the suite's folder.
pub(super) fn file_of(library: &str, place: Place<'_>) -> Option<PathBuf> {
    let is_file = !library.starts_with('-') && (library.contains('/') || is_object(Path::new(library)));
    is_file.then(|| place.suite.folder.join(library))
}
