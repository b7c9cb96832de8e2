//! The programs of `programs/hazards`: what their JSON says about building and running them.

use crate::run;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A hazard program and its stated metrics.
pub struct Program {
    /// Its name, `NAME` of `NAME.json`.
    pub name: String,
    /// The document beside the source.
    pub stated: Value,
    sources: PathBuf,
}

impl Program {
    /// The program `programs/hazards/NAME`.
    ///
    /// # Panics
    /// When its JSON is missing or is none.
    #[must_use]
    pub fn load(name: &str) -> Self {
        let sources = crate::repository().join("programs/hazards");
        let file = sources.join(format!("{name}.json"));
        let text = std::fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()));
        Self { name: name.to_owned(), stated: crate::session::json(&text), sources }
    }

    /// Builds the program and its helpers into `folder`, and returns the program's path.
    ///
    /// # Panics
    /// When the compiler refuses it.
    #[must_use]
    pub fn build(&self, folder: &Path, more_libs: &Value) -> PathBuf {
        for helper in self.stated["helpers"].as_array().into_iter().flatten() {
            let source = self.sources.join(string(&helper["source"]));
            compile(&strings(&helper["flags"]), &source, &folder.join(string(&helper["output"])), &[]);
        }
        let cpp = self.sources.join(format!("{}.cpp", self.name));
        let source = if cpp.is_file() { cpp } else { cpp.with_extension("c") };
        let program = folder.join(&self.name);
        let libs = [strings(&self.stated["libs"]), strings(more_libs)].concat();
        compile(&strings(&self.stated["build"]), &source, &program, &libs);
        program
    }

    /// The command line: `run` if it is stated, otherwise the program, then `args`.
    #[must_use]
    pub fn words(&self, program: &Path) -> Vec<String> {
        let run = strings(&self.stated["run"]);
        let start = if run.is_empty() { vec!["{program}".to_owned()] } else { run };
        let words = [start, strings(&self.stated["args"])].concat();
        words.iter().map(|word| self.filled(word, program)).collect()
    }

    /// The stated environment.
    #[must_use]
    pub fn env(&self, program: &Path) -> Vec<(String, String)> {
        let entries = self.stated["env"].as_object().into_iter().flatten();
        entries.map(|(name, value)| (name.clone(), self.filled(&string(value), program))).collect()
    }

    /// `text` with `{program}`, `{source}` and `{out}` filled in.
    #[must_use]
    pub fn filled(&self, text: &str, program: &Path) -> String {
        let folder = program.parent().unwrap_or(Path::new("/"));
        text.replace("{program}", &program.to_string_lossy())
            .replace("{source}", &self.sources.to_string_lossy())
            .replace("{out}", &folder.to_string_lossy())
    }
}

/// Builds a C program of one text with the flags that all hazards have, and returns its path.
///
/// # Panics
/// When the compiler refuses it.
#[must_use]
pub fn build_text(folder: &Path, name: &str, text: &str) -> PathBuf {
    build_text_with(folder, name, text, &[])
}

/// As [`build_text`], with these flags of the compiler besides.
#[must_use]
pub fn build_text_with(folder: &Path, name: &str, text: &str, more: &[&str]) -> PathBuf {
    let source = folder.join(format!("{name}.c"));
    std::fs::write(&source, text).expect("the test's folder takes a file");
    let flags = ["cc", "-O2", "-g", "-Wall", "-Wextra", "-fomit-frame-pointer", "-pthread"];
    let program = folder.join(name);
    let flags: Vec<String> = flags.iter().chain(more).map(|flag| (*flag).to_owned()).collect();
    compile(&flags, &source, &program, &[]);
    program
}

fn compile(flags: &[String], source: &Path, output: &Path, libs: &[String]) {
    let mut compiler = run::command(&flags[0]);
    compiler.args(&flags[1..]).arg(source).arg("-o").arg(output).args(libs);
    let finished = run::finish(&mut compiler).well();
    assert!(finished.stderr.is_empty(), "the compiler warns:\n{finished}");
}

/// The strings of a JSON list; none when there is no list.
#[must_use]
pub fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().map(string).collect()
}

/// A JSON string.
///
/// # Panics
/// When it is none.
#[must_use]
pub fn string(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} should be a string")).to_owned()
}
