//! A suite of allocation tests in a folder of its own, and what `mallow check` says of it.

use crate::session::json;
use crate::{Exit, Finished, Workshop, run};
use serde_json::Value;
use std::fs;

/// A thousand blocks in a region, and whatever `more` does in it.
#[must_use]
pub fn source(more: &str) -> String {
    format!(
        "#include \"mallow.h\"\n#include <string.h>\n#include <time.h>\n#include <unistd.h>\n\
         static void run(void *context) {{\n    int i;\n    (void)context;\n\
         \x20   for (i = 0; i < 1000; i++) {{ void *block = malloc(16); mallow_keep(block); free(block); }}\n    {more}\n}}\n\
         int main(void) {{ mallow_ops(1000); mallow_measure(\"work\", run, NULL); return 0; }}\n"
    )
}

/// A suite of one test, `test_work.c`, unless more is written into it.
pub struct Suite {
    /// The folder around the suite's own.
    pub workshop: Workshop,
}

impl Suite {
    /// A suite with this source of its test.
    #[must_use]
    pub fn new(name: &str, source: &str) -> Suite {
        let suite = Suite::empty(name);
        suite.write("test_work.c", source);
        suite
    }

    /// A suite without a test.
    ///
    /// # Panics
    /// When no folder can be made.
    #[must_use]
    pub fn empty(name: &str) -> Suite {
        let suite = Suite { workshop: Workshop::new(&format!("guard-{name}")) };
        fs::create_dir(suite.workshop.file("suite")).expect("the workshop takes a folder");
        suite
    }

    /// Writes a file into the suite's folder.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.workshop.file("suite").join(name), text).expect("the suite's folder takes a file");
    }

    /// `mallow check` of the suite.
    #[must_use]
    pub fn check(&self, arguments: &[&str]) -> Finished {
        self.check_in(&[], arguments)
    }

    /// The same with variables set.
    #[must_use]
    pub fn check_in(&self, environment: &[(&str, &str)], arguments: &[&str]) -> Finished {
        let mut mallow = run::mallow();
        mallow.env("XDG_CACHE_HOME", self.workshop.file("cache")).envs(environment.iter().copied());
        run::finish(mallow.arg("check").arg(self.workshop.file("suite")).args(arguments))
    }

    /// The check's report, after it ended with a status.
    #[must_use]
    #[track_caller]
    pub fn report(&self, status: i32) -> Value {
        json(&self.check(&["--json"]).ended(Exit::Status(status)).stdout)
    }

    /// The one test of a check's report, after it ended with a status.
    #[must_use]
    #[track_caller]
    pub fn only_test(&self, status: i32) -> Value {
        self.report(status)["tests"][0].clone()
    }

    /// Names and verdicts in the order of the report, after the check ended with a status.
    #[must_use]
    #[track_caller]
    pub fn outcomes(&self, status: i32, arguments: &[&str]) -> Vec<(String, String)> {
        let arguments = [&["--json"], arguments].concat();
        let report = json(&self.check(&arguments).ended(Exit::Status(status)).stdout);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let tests = report["tests"].as_array().into_iter().flatten();
        tests.map(|test| (text(&test["name"]), text(&test["outcome"]))).collect()
    }
}

/// A test's sentences, one on a line.
///
/// # Panics
/// When the report's test has none.
#[must_use]
pub fn sentences(test: &Value) -> String {
    let sentences = test["sentences"].as_array().expect("a test has a list of sentences").iter();
    sentences.filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}
