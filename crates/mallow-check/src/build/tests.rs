//! Suites in temporary folders, built with the real compilers, as a person would.

use super::*;
use std::fs;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A suite and where it is built.
struct Bench {
    folder: TempDir,
    tools: fn() -> Tools,
}

impl Bench {
    fn new(files: &[(&str, &str)]) -> Bench {
        let bench = Bench { folder: TempDir::new().unwrap(), tools: Tools::of_environment };
        for (name, text) in files {
            bench.write(name, text);
        }
        bench
    }

    fn suite_folder(&self) -> std::path::PathBuf {
        self.folder.path().canonicalize().unwrap().join("suite")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.suite_folder_or_make().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn suite_folder_or_make(&self) -> std::path::PathBuf {
        let folder = self.suite_folder();
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn try_prepare(&self) -> Result<Vec<Result<Prepared, BuildError>>, BuildError> {
        let suite = Suite::open(Some(&self.suite_folder()), &[]).unwrap();
        let workplace = Workplace::open_below(&self.folder.path().join("cache"), &suite.folder);
        prepare(&suite, &workplace, &(self.tools)())
    }

    fn prepare(&self) -> Vec<Result<Prepared, BuildError>> {
        self.try_prepare().unwrap()
    }

    fn prepared(&self) -> Vec<Prepared> {
        self.prepare().into_iter().collect::<Result<_, _>>().unwrap()
    }

    /// Whether each test was built.
    fn built(&self) -> Vec<bool> {
        self.prepared().into_iter().map(|prepared| prepared.was_built).collect()
    }
}

fn output(prepared: &Prepared) -> String {
    let output = Command::new(&prepared.command[0])
        .args(&prepared.command[1..])
        .envs(prepared.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&prepared.directory)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn file_name(path: &std::ffi::OsStr) -> String {
    Path::new(path).file_name().unwrap().to_string_lossy().into_owned()
}

const C: &str = r#"
#include <stdio.h>
#include "mallow.h"
#include "number.h"
static void run(void *context) { printf("%s %d\n", (const char *)context, NUMBER); }
int main(void) { mallow_ops(1); mallow_measure("c", run, "c"); return 0; }
"#;

const CXX: &str = r#"
#include <cstdio>
#include "mallow.h"
int main() { std::string_view *unused = nullptr; (void)unused; mallow_region_begin("cxx"); std::puts("cxx"); mallow_region_end("cxx"); }
"#;

const RUST: &str = r#"
mod part;
fn main() { mallow_markers::ops(1); mallow_markers::measure("rust", || println!("rust {}", part::NUMBER)); }
"#;

#[test]
fn every_language_is_built_run_and_not_built_again() {
    let cxx = CXX.replace("#include <cstdio>", "#include <cstdio>\n#include <string_view>");
    let bench = Bench::new(&[
        ("test_c.c", C),
        ("number.h", "#define NUMBER 1\n"),
        ("test_cxx.cpp", &cxx),
        (
            "test_node.js",
            "const mallow = require('mallow'); mallow.measure('node', () => console.log('node'));",
        ),
        ("test_python.py", "import mallow\nmallow.measure('python', lambda: print('python'))\n"),
        ("test_ruby.rb", "require 'mallow'\nMallow.measure('ruby') { puts 'ruby' }\n"),
        ("test_rust.rs", RUST),
        ("part.rs", "pub const NUMBER: u32 = 1;\n"),
    ]);
    let prepared = bench.prepared();
    let printed: Vec<String> = prepared.iter().map(output).collect();
    assert_eq!(printed, ["c 1\n", "cxx\n", "node\n", "python\n", "ruby\n", "rust 1\n"]);
    assert_eq!(
        prepared.iter().map(|prepared| prepared.was_built).collect::<Vec<_>>(),
        [true, true, false, false, false, true]
    );
    assert_eq!(file_name(&prepared[0].command[0]), "test_c");
    assert_eq!(bench.built(), [false; 6]);
}
