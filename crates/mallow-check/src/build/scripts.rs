//! Python, Ruby and Node: nothing is built; the interpreter finds the markers where its variable says.

use super::BuildError;
use super::place::{Place, Plan};
use super::tools::{Kind, NODE, PYTHON, RUBY};
use crate::manifest::Language;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Makes an interpreter print its version and then its real path. Version managers put scripts into `PATH`, whose own
/// allocations must not be counted.
const QUESTIONS: [(Language, Kind, &str, &[&str]); 3] = [
    (
        Language::Python,
        PYTHON,
        "python",
        &["-c", "import sys; print('%d.%d' % sys.version_info[:2]); print(sys.executable)"],
    ),
    (
        Language::Ruby,
        RUBY,
        "ruby",
        &["-e", "require 'rbconfig'; puts RUBY_VERSION[/\\d+\\.\\d+/]; puts RbConfig.ruby"],
    ),
    (
        Language::Node,
        NODE,
        "node",
        &["-e", "console.log(process.versions.node.split('.')[0]); console.log(process.execPath)"],
    ),
];

/// The markers collect garbage before a region begins and ends; and runs are equal only if V8 compiles and collects
/// on the same thread at the same places. A test's own flags come after these and take precedence.
pub(super) const NODE_FLAGS: [&str; 7] = [
    "--expose-gc",
    "--predictable",
    "--single-threaded",
    "--no-opt",
    "--no-sparkplug",
    "--no-flush-bytecode",
    "--min-semi-space-size=16",
];

pub(super) fn plan(place: Place<'_>, source: &Path, language: Language) -> Result<Plan, BuildError> {
    let Some((_, kind, word, question)) = QUESTIONS.into_iter().find(|(known, ..)| *known == language) else {
        return Err(BuildError::new(format!("{} is not interpreted", language.word())));
    };
    let tool = place.tools.tool(kind, &place.test.name, question)?;
    let mut lines = tool.version.lines();
    let version = lines.next().unwrap_or_default();
    let mut command = tool.words.clone();
    if let (Some(program), Some(first)) =
        (lines.next().filter(|line| line.starts_with('/')), command.first_mut())
    {
        *first = program.into();
    }
    if language == Language::Node {
        command.extend(NODE_FLAGS.map(OsString::from));
    }
    command.extend(place.test.flags.iter().map(OsString::from));
    command.push(source.into());
    command.extend(place.test.arguments.iter().map(OsString::from));
    let runtime = (!version.is_empty()).then(|| format!("{word} {version}"));
    let prepared = place.prepared(command, environment(place, language), runtime);
    Ok(Plan { pieces: Vec::new(), last: None, prepared })
}

/// Returns the variables with which a command finds the markers, if its name is an interpreter's.
pub(super) fn environment_of_command(place: Place<'_>, name: &OsStr) -> Vec<(OsString, OsString)> {
    let name =
        Path::new(name).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let language = QUESTIONS.into_iter().find(|(.., word, _)| name.starts_with(word));
    language.map_or_else(Vec::new, |(language, ..)| environment(place, language))
}

fn environment(place: Place<'_>, language: Language) -> Vec<(OsString, OsString)> {
    let root = place.workdir.root();
    let with_path = |name: &str, folder: &Path| {
        let own = place.test.settings.environment.get(name).map(OsString::from);
        with_path(name, folder, own.or_else(|| env::var_os(name)))
    };
    match language {
        Language::Python => vec![
            with_path("PYTHONPATH", &root.join("python")),
            // Compiled modules are found or not found in the same place on every machine.
            ("PYTHONPYCACHEPREFIX".into(), root.join("pycache").into()),
        ],
        Language::Ruby => vec![with_path("RUBYLIB", &root.join("ruby"))],
        Language::Node => vec![with_path("NODE_PATH", &root.join("node"))],
        _ => Vec::new(),
    }
}

/// A list of folders in a variable, with `folder` before the others.
fn with_path(name: &str, folder: &Path, others: Option<OsString>) -> (OsString, OsString) {
    let mut folders = folder.as_os_str().to_owned();
    if let Some(others) = others.filter(|others| !others.is_empty()) {
        folders.push(":");
        folders.push(others);
    }
    (name.into(), folders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_markers_are_found_before_and_beside_a_projects_own_folders() {
        let (name, folders) = with_path("PYTHONPATH", Path::new("/shims"), Some("lib:more".into()));
        assert_eq!((name, folders), ("PYTHONPATH".into(), "/shims:lib:more".into()));
        assert_eq!(with_path("RUBYLIB", Path::new("/shims"), Some("".into())).1, "/shims");
        assert_eq!(with_path("RUBYLIB", Path::new("/shims"), None).1, "/shims");
    }
}
