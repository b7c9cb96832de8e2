//! What a plan is made of, and what it comes to; each language fills it in its own way.

use super::step::Step;
use super::{Prepared, Tools};
use crate::manifest::TestSpec;
use crate::suite::Suite;
use crate::workdir::Workdir;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The steps for one test.
#[derive(Debug)]
pub(super) struct Plan {
    /// Steps that may be shared with other tests, and depend on nothing.
    pub(super) pieces: Vec<Step>,
    /// The step that makes the program of the pieces.
    pub(super) last: Option<Step>,
    /// What then can be run.
    pub(super) prepared: Prepared,
}

/// The inputs of a plan.
#[derive(Clone, Copy)]
pub(super) struct Place<'all> {
    pub(super) test: &'all TestSpec,
    pub(super) suite: &'all Suite,
    pub(super) workdir: &'all Workdir,
    pub(super) tools: &'all Tools,
}

impl Place<'_> {
    /// Returns the command to run, with the test's own variables after those that its language needs.
    pub(super) fn prepared(
        self,
        command: Vec<OsString>,
        language_environment: Vec<(OsString, OsString)>,
        runtime: Option<String>,
    ) -> Prepared {
        let own = self.test.settings.environment.iter().map(|(name, value)| (name.into(), value.into()));
        // The path of the markers is followed by the test's own folders, because it replaces them.
        let mut environment: BTreeMap<OsString, OsString> = own.collect();
        for (name, value) in language_environment {
            match name.to_str() {
                Some("PYTHONPATH" | "RUBYLIB" | "NODE_PATH") => _ = environment.insert(name, value),
                _ => _ = environment.entry(name).or_insert(value),
            }
        }
        let environment = environment.into_iter().collect();
        Prepared {
            name: self.test.name.clone(),
            command,
            environment,
            directory: self.test.directory.clone(),
            runtime,
            was_built: false,
        }
    }

    /// A built program with the test's arguments.
    pub(super) fn of_program(self, program: PathBuf, runtime: Option<String>) -> Prepared {
        let arguments = self.test.arguments.iter().map(OsString::from);
        let command = std::iter::once(program.into_os_string()).chain(arguments).collect();
        self.prepared(command, Vec::new(), runtime)
    }

    /// A path as it is shown: from the suite's folder if it lies there.
    pub(super) fn shown(self, path: &Path) -> &Path {
        path.strip_prefix(&self.suite.folder).unwrap_or(path)
    }

    /// The flags that replace folders of this machine by those that are the same everywhere.
    pub(super) fn prefix_maps(self, flag: &str) -> Vec<OsString> {
        // The last match counts: the working folder may be in the suite's. With a slash after it nothing is left of
        // the suite's folder, and without one it is the compiler's own working directory.
        let suite = &self.suite.folder;
        let maps = [(suite.clone(), ""), (suite.join(""), ""), (self.workdir.root().to_owned(), "mallow")];
        let map = |(from, to): (PathBuf, &str)| {
            let mut whole = OsString::from(flag);
            whole.push(from);
            whole.push("=");
            whole.push(to);
            whole
        };
        maps.into_iter().map(map).collect()
    }
}
