//! Which programs a command may become, and what the recorder is handed for those that have an allocator in them.
//!
//! The command's first word, the interpreter of a script, and whatever else in the command is the name of a program: what a wrapper starts stands
//! behind it (`env`, `nice`, `timeout`), and what a shell starts in its text. A program that the command does not name is not known before
//! it runs.

use crate::heap::linked_into;
use crate::looked_at::{Object, Role, image_of};
use mallow_launch::{Content, Launch, LaunchError, STATIC_CURE, find_program, unpack};
use mallow_patches::plan_of;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The first part of the name of a plan's file.
const NAME_START: &str = "patches";
/// A command line may be long; its programs are at its beginning.
const WORDS_MAX: usize = 64;

/// What is preloaded into or patched in a command.
#[derive(Clone, Debug)]
pub(crate) struct Inside<'a> {
    /// The preload library.
    pub(crate) library: Content<'a>,
    /// The path of the plan, when one is needed.
    pub(crate) plan: Option<String>,
}

impl Inside<'_> {
    /// Analyses the programs of the command. Before its time is measured: a large one takes a while.
    pub(crate) fn prepare<'a>(
        library: Content<'a>,
        launch: &Launch<'_>,
        command: &[OsString],
    ) -> Result<Inside<'a>, LaunchError> {
        let programs = programs_in(command);
        let images: Vec<_> = programs.iter().filter_map(|program| image_of(&executable(program))).collect();
        if let Some(program) = launch.static_program() {
            check_static(program)?;
        }
        let plan = plan_of(images.iter().map(|image| (0, &**image)));
        let path = plan.map(|plan| unpack(NAME_START, ".plan", Content::Plain(&plan))).transpose()?;
        Ok(Inside { library, plan: path.map(|path| path.to_string_lossy().into_owned()) })
    }
}

fn executable(program: &Path) -> Object {
    Object { path: program.to_owned(), role: Role::Executable }
}

/// Refuses a static program that the recorder would not get into, or would see nothing in.
fn check_static(program: &Path) -> Result<(), LaunchError> {
    let image = image_of(&executable(program));
    let reason = match image.as_ref().and_then(|image| image.static_start.as_ref()) {
        Some(Ok(())) => return Ok(()),
        Some(Err(reason)) => format!("{reason}; {STATIC_CURE}"),
        _ if File::open(program).is_ok_and(|file| linked_into(file).is_go) => GO.to_owned(),
        _ => format!("{NO_NAMES}; {STATIC_CURE}"),
    };
    Err(LaunchError::CannotInject { path: program.to_owned(), reason })
}

const NO_NAMES: &str = "it has no names of functions that allocate (it is stripped, or has none), by which alone they could be found; keep its \
    symbols (no -s, no strip), or put its debug file where debuggers look for it";

const GO: &str = "Go keeps its objects in a heap of its own, which does not come from malloc, and nothing else allocates in it; record one that \
    is built with cgo, or use runtime/pprof";

/// The programs that a command names.
fn programs_in(command: &[OsString]) -> BTreeSet<PathBuf> {
    let mut programs = BTreeSet::new();
    for word in command.iter().take(WORDS_MAX) {
        // A text for a shell is a word of several.
        let parts = word.as_bytes().split(|byte| b" \t\n;&|()'\"`$={}<>".contains(byte));
        for part in parts.filter(|part| !part.is_empty()).take(WORDS_MAX) {
            if let Ok(path) = find_program(OsStr::from_bytes(part)) {
                note(&path, &mut programs, 0);
            }
        }
    }
    programs
}

fn note(path: &Path, programs: &mut BTreeSet<PathBuf>, depth: u32) {
    const INTERPRETERS_MAX: u32 = 5;
    let mut start = [0u8; 256];
    let Ok(read) = File::open(path).and_then(|mut file| file.read(&mut start)) else { return };
    let start = &start[..read];
    if start.starts_with(b"\x7fELF") {
        programs.insert(path.canonicalize().unwrap_or_else(|_| path.to_owned()));
    } else if let Some(line) = start.strip_prefix(b"#!").filter(|_| depth < INTERPRETERS_MAX) {
        let line = line.split(|byte| *byte == b'\n').next().unwrap_or_default();
        // `#!/usr/bin/env name` names two.
        for word in line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).take(3) {
            if let Ok(interpreter) = find_program(OsStr::from_bytes(word)) {
                note(&interpreter, programs, depth + 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn names(command: &[&str]) -> Vec<String> {
        let command: Vec<OsString> = command.iter().map(Into::into).collect();
        let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        programs_in(&command).iter().map(name).collect()
    }

    #[test]
    fn programs_behind_wrappers_and_in_texts_are_found() {
        let tail = std::fs::canonicalize("/usr/bin/tail").unwrap();
        let tail = tail.file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(names(&["/usr/bin/tail", "-n", "1"]), std::slice::from_ref(&tail));
        let found = names(&["nice", "-n", "1", "env", "A=1", "/usr/bin/tail"]);
        assert!(["nice", "env", &tail].iter().all(|name| found.iter().any(|it| it == name)), "{found:?}");
        let found = names(&["/bin/sh", "-c", "x=$(/usr/bin/tail -n 1); true"]);
        assert!(found.contains(&tail), "{found:?}");
    }

    #[test]
    fn a_script_is_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "#!/usr/bin/env -S tail -n 1\n").unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert!(names(&[script.to_str().unwrap()]).contains(&"env".to_owned()));
        assert_eq!(names(&["no-such-program-anywhere"]), [""; 0]);
    }
}
