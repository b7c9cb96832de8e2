//! Suites in temporary folders, built with the real compilers, as a person would.

use super::*;
use mallow_symbols::{ModuleKey, SearchPaths, Symbolizer};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

mod changes;
mod failures;
mod flags;

/// A suite and where it is built.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new(files: &[(&str, &str)]) -> Bench {
        let bench = Bench { folder: TempDir::new().unwrap() };
        for (name, text) in files {
            bench.write(name, text);
        }
        bench
    }

    fn suite_folder(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("suite")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.suite_folder().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A program of the suite's folder.
    fn write_program(&self, name: &str, text: &str) -> PathBuf {
        self.write(name, text);
        let path = self.suite_folder().join(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Gives a file another date and nothing else.
    fn touch(&self, name: &str) {
        let file = File::options().append(true).open(self.suite_folder().join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(5)).unwrap();
    }

    fn workdir(&self, suite: &Suite) -> Workdir {
        Workdir::open_below(&self.folder.path().join("cache"), &suite.folder)
    }

    fn prepare_with(&self, tools: &Tools) -> Result<Vec<Result<Prepared, BuildError>>, BuildError> {
        let suite = Suite::open(Some(&self.suite_folder()), &[]).unwrap();
        prepare(&suite, &self.workdir(&suite), tools)
    }

    fn prepared(&self) -> Vec<Prepared> {
        let results = self.prepare_with(&Tools::of_environment()).unwrap();
        results.into_iter().collect::<Result<_, _>>().unwrap()
    }

    /// Returns whether each test was built, and what it prints.
    fn built(&self) -> Vec<(bool, String)> {
        self.prepared().iter().map(|prepared| (prepared.was_built, output(prepared))).collect()
    }

    /// The same of the only test.
    fn built_one(&self) -> (bool, String) {
        let built = self.built();
        assert_eq!(built.len(), 1);
        built.into_iter().next().unwrap()
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

fn variable<'of>(prepared: &'of Prepared, name: &str) -> Option<&'of OsStr> {
    prepared.environment.iter().find(|(there, _)| there == name).map(|(_, value)| value.as_os_str())
}

const C: &str = r#"
#include <stdio.h>
#include "mallow.h"
#include "number.h"
static void run(void *context) { printf("%s %d %s\n", (const char *)context, NUMBER, __FILE__); }
int main(void) { mallow_ops(1); mallow_measure("c", run, "c"); return 0; }
"#;

const CXX: &str = r#"
#include <cstdio>
#include <string_view>
#include "mallow.h"
int main() { std::string_view text = "cxx"; mallow_region_begin("cxx"); std::puts(text.data()); mallow_region_end("cxx"); }
"#;

const RUST: &str = r#"
mod part;
fn main() { mallow_markers::ops(1); mallow_markers::measure("rust", || println!("rust {} {}", part::NUMBER, file!())); }
"#;

fn all_languages() -> Bench {
    Bench::new(&[
        ("test_c.c", C),
        ("number.h", "#define NUMBER 1\n"),
        ("test_cxx.cpp", CXX),
        (
            "test_node.js",
            "const mallow = require('mallow'); mallow.measure('node', () => console.log('node'));",
        ),
        ("test_python.py", "import mallow\nmallow.measure('python', lambda: print('python'))\n"),
        ("test_ruby.rb", "require 'mallow'\nMallow.measure('ruby') { puts 'ruby' }\n"),
        ("test_rust.rs", RUST),
        ("part.rs", "pub const NUMBER: u32 = 1;\n"),
    ])
}

#[test]
fn every_language_is_built_and_run_and_not_built_again() {
    let bench = all_languages();
    let printed = ["c 1 test_c.c\n", "cxx\n", "node\n", "python\n", "ruby\n", "rust 1 test_rust.rs\n"];
    let built = bench.built();
    assert_eq!(
        built.iter().map(|(_, printed)| printed).collect::<Vec<_>>(),
        printed.iter().collect::<Vec<_>>()
    );
    assert_eq!(
        built.iter().map(|(built, _)| *built).collect::<Vec<_>>(),
        [true, true, false, false, false, true]
    );
    let built = bench.built();
    assert_eq!(built, printed.map(|printed| (false, printed.to_owned())));
}

#[test]
fn runtimes_are_told_with_the_part_of_the_version_that_matters() {
    let bench = all_languages();
    let runtimes: Vec<String> =
        bench.prepared().into_iter().map(|prepared| prepared.runtime.unwrap()).collect();
    assert_eq!(runtimes[0], "native");
    assert_eq!(runtimes[1], "native");
    for (runtime, word, numbers) in [(2, "node", 1), (3, "python", 2), (4, "ruby", 2), (5, "rustc", 2)] {
        let version = runtimes[runtime].strip_prefix(&format!("{word} ")).unwrap();
        let found: Vec<u32> = version.split('.').map(|number| number.parse().unwrap()).collect();
        assert_eq!(found.len(), numbers, "{version}");
    }
}

/// The file of the first line of a function, as mallow shows it.
fn file_of(program: &OsStr, function: &str) -> String {
    let nm = Command::new("nm").arg(program).output().unwrap();
    let symbols = String::from_utf8(nm.stdout).unwrap();
    let line =
        symbols.lines().find(|line| line.split(' ').nth(2).is_some_and(|name| name.starts_with(function)));
    let address = u64::from_str_radix(line.unwrap().split(' ').next().unwrap(), 16).unwrap();
    let module = ModuleKey { path: program.to_str().unwrap().to_owned(), build_id: Vec::new() };
    let mut symbolizer = Symbolizer::new(SearchPaths::default());
    let frames = symbolizer.resolve(&module, &[address]).remove(0);
    frames.last().and_then(|frame| frame.file.clone()).unwrap()
}

#[test]
fn sites_show_sources_relative_to_the_suite() {
    let bench = all_languages();
    bench.write("below/test_below.c", C);
    bench.write("mallow.toml", "[gate]\nsuites = [\".\", \"below\"]\nc_flags = \"-I.\"\n");
    let prepared = bench.prepared();
    let file = |index: usize, function: &str| file_of(&prepared[index].command[0], function);
    assert_eq!(file(0, "main"), "below/test_below.c");
    assert_eq!(file(1, "main"), "test_c.c");
    assert_eq!(file(2, "main"), "test_cxx.cpp");
    assert_eq!(file(6, "_ZN9test_rust4main"), "test_rust.rs");
}

#[test]
fn files_that_are_included_by_an_absolute_path_are_relative_too() {
    let bench = Bench::new(&[("include/where.h", "static const char *where(void) { return __FILE__; }\n")]);
    let folder = bench.suite_folder();
    bench.write(
        "mallow.toml",
        &format!("[gate]\nsuites = [\".\"]\nc_flags = \"-I{}/include\"\n", folder.display()),
    );
    bench.write(
        "test_a.c",
        "#include <stdio.h>\n#include \"where.h\"\nint main(void) { return puts(where()) < 0; }\n",
    );
    assert_eq!(bench.built_one(), (true, "include/where.h\n".to_owned()));
}

#[test]
fn the_environment_has_the_pins_the_tests_own_variables_and_the_path_of_the_shims() {
    let bench = Bench::new(&[
        (
            "mallow.toml",
            "[gate]\nsuites = [\".\"]\nenv = { TZ = \"Asia/Tokyo\", A = \"gate\" }\n[[test]]\nname = \"test_p\"\nenv = { A = \"test\" }\n",
        ),
        (
            "test_p.py",
            "import os\nprint(os.environ['A'], os.environ['TZ'], os.environ['LC_ALL'], os.environ['PYTHONHASHSEED'])\n",
        ),
    ]);
    assert_eq!(bench.built_one(), (false, "test Asia/Tokyo C 0\n".to_owned()));
    let prepared = &bench.prepared()[0];
    let path = variable(prepared, "PYTHONPATH").unwrap().to_str().unwrap().split(':').next().unwrap();
    assert!(Path::new(path).join("mallow/__init__.py").is_file());
    assert_eq!(variable(prepared, "RUBYLIB"), None);
}

#[test]
fn commands_are_found_from_the_suites_folder_and_run_where_they_are_told() {
    let bench = Bench::new(&[(
        "mallow.toml",
        "[[test]]\nname = \"own\"\ncmd = [\"./tools/own\", \"a b\"]\ncwd = \"data\"\n[[test]]\nname = \"path\"\ncmd = [\"echo\", \"$A\"]\n",
    )]);
    bench.write_program("tools/own", "#!/bin/sh\necho \"$1 $(basename \"$(pwd)\")\"\n");
    bench.write("data/x", "");
    assert_eq!(bench.built(), [(false, "a b data\n".to_owned()), (false, "$A\n".to_owned())]);
    let prepared = &bench.prepared()[1];
    assert!(Path::new(&prepared.command[0]).is_absolute());
    assert_eq!(prepared.runtime, None);
}

#[test]
fn the_sources_folder_is_only_read() {
    let bench = all_languages();
    bench.prepared().iter().for_each(|prepared| drop(output(prepared)));
    let entries = fs::read_dir(bench.suite_folder()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let sources =
        ["test_c.c", "test_cxx.cpp", "test_node.js", "test_python.py", "test_ruby.rb", "test_rust.rs"];
    assert_eq!(names, [&["number.h", "part.rs"][..], &sources].concat());
}
