//! Which objects of a program the hooks cannot have seen.

use super::Task;
use crate::environment;
use crate::manifest::Mode;
use mallow_gate::measurement::Metric;

use mallow_collect::{RegionRun, WatchedProcess};
use std::ffi::OsStr;

/// The word under which Python's markers tell how many blocks Python serves from arenas of its own.
const HIDDEN_BLOCKS: &str = "hidden_blocks";

/// Objects of a language that are not among what was counted.
pub(super) struct Hidden {
    /// Why, and the cure.
    pub(super) sentence: &'static str,
    /// What the environment's runtime is called then, behind its name: such counts are of another kind.
    pub(super) class: &'static str,
}

/// Returns whether objects are missing: the language of a process that was measured serves them itself, and nobody told how many there were.
pub(super) fn objects(task: &Task<'_>, processes: &[WatchedProcess]) -> Option<Hidden> {
    processes
        .iter()
        .filter(|process| is_measured(task.test.mode, process))
        .find_map(|process| of_language(task, process))
}

fn of_language(task: &Task<'_>, process: &WatchedProcess) -> Option<Hidden> {
    let is_told = |metric: Metric| {
        task.test.mode == Mode::Region
            && process.runs.iter().any(|run| reported(run, metric.word()).is_some())
    };
    let hidden = |sentence, class| Some(Hidden { sentence, class });
    let modules: Vec<String> = process.modules.iter().map(|module| module.path.clone()).collect();
    let executable = process.executable.as_deref().map(|path| path.to_string_lossy().into_owned());
    let runtime = environment::runtime(&executable.unwrap_or_default(), &modules)?;
    match runtime.split(' ').next() {
        Some("python") if !process.python_objects && python_keeps_arenas(task, &process.runs) => hidden(
            "Python serves its objects from arenas of its own, and one call of malloc stands for hundreds of them: run it with \
             PYTHONMALLOC=malloc, as mallow does unless `env` or the program says otherwise, or say `python_objects = true`.",
            " pymalloc",
        ),
        Some("ruby") if !is_told(Metric::Objects) => hidden(
            "Ruby's objects are not malloc's, and only the markers tell how many were made: mark the region in Ruby, with `require \
             \"mallow\"`, in the mode `region`; or say `objects = false` in mallow.toml when calls of malloc alone are meant.",
            "",
        ),
        Some("node") if !is_told(Metric::ObjectBytes) => hidden(
            "JavaScript's objects are not malloc's, and only the markers tell how many bytes were made: mark the region in \
             JavaScript, with `require('mallow')`, in the mode `region`, with node 18.15 or newer and --expose-gc; or say `objects = \
             false` in mallow.toml when calls of malloc alone are meant.",
            "",
        ),
        _ => None,
    }
}

/// Those that marked a region are, whatever started them; or all of them.
fn is_measured(mode: Mode, process: &WatchedProcess) -> bool {
    mode != Mode::Region || !process.runs.is_empty()
}

/// What the markers tell goes before what the program was started with.
fn python_keeps_arenas(task: &Task<'_>, runs: &[RegionRun]) -> bool {
    if let Some(most) = runs.iter().filter_map(|run| reported(run, HIDDEN_BLOCKS)).max() {
        return most > 0;
    }
    let allocator = task.prepared.environment.iter().find(|(name, _)| name == "PYTHONMALLOC");
    !allocator.is_some_and(|(_, value)| {
        [OsStr::new("malloc"), OsStr::new("malloc_debug")].contains(&value.as_os_str())
    })
}

fn reported(run: &RegionRun, word: &str) -> Option<u64> {
    run.told.iter().find(|(name, _)| name == word).map(|(_, value)| *value)
}
