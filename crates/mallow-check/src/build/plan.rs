//! What has to be done for one test, before anything is done.

use super::place::{Place, Plan};
use super::{BuildError, Tools, native, rust, scripts, swift};
use crate::manifest::{Language, Program, TestSpec};
use crate::suite::Suite;
use crate::workdir::Workdir;
use std::ffi::{OsStr, OsString};

pub(super) fn plan(
    test: &TestSpec,
    suite: &Suite,
    workdir: &Workdir,
    tools: &Tools,
) -> Result<Plan, BuildError> {
    let place = Place { test, suite, workdir, tools };
    if !test.directory.is_dir() {
        let sentence =
            format!("the test {:?} runs in {}, which is no folder", test.name, test.directory.display());
        return Err(BuildError::new(sentence));
    }
    match &test.program {
        None => Err(BuildError::new(format!("nothing says what the test {:?} runs", test.name))),
        Some(Program::Command(words)) => command(place, words),
        Some(Program::Source(source, language)) => {
            if !source.is_file() {
                let sentence =
                    format!("the source of the test {:?}, {}, is not there", test.name, source.display());
                return Err(BuildError::new(sentence));
            }
            match language {
                Language::C | Language::Cxx => native::plan(place, source, *language),
                Language::Rust => rust::plan(place, source),
                Language::Swift => swift::plan(place, source),
                Language::Python | Language::Ruby | Language::Node => scripts::plan(place, source, *language),
            }
        }
    }
}

fn command(place: Place<'_>, words: &[String]) -> Result<Plan, BuildError> {
    let (name, arguments) = words
        .split_first()
        .map_or((OsStr::new(""), &[][..]), |(name, arguments)| (OsStr::new(name), arguments));
    let Some(program) = place.tools.find(name, &place.suite.folder) else {
        let sentence = format!(
            "the test {:?} runs {}, which is not there or cannot be run",
            place.test.name,
            name.to_string_lossy()
        );
        return Err(BuildError::new(sentence));
    };
    let command =
        std::iter::once(program.into_os_string()).chain(arguments.iter().map(OsString::from)).collect();
    let environment = scripts::environment_of_command(place, name);
    Ok(Plan { pieces: Vec::new(), last: None, prepared: place.prepared(command, environment, None) })
}
