//! Heap dumps of jemalloc and gperftools: named as their own tools name them, if whoever asks says that the files may be opened.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const SOURCE: &str = "#include <stdlib.h>\n\
    static void *volatile kept;\n\
    __attribute__((noinline)) void leak_small(int n) { for (int i = 0; i < n; i++) kept = malloc(24); }\n\
    __attribute__((noinline)) void leak_large(int n) { for (int i = 0; i < n; i++) kept = malloc(4096); }\n\
    static inline __attribute__((always_inline)) void *inlined(size_t size) { return malloc(size); }\n\
    __attribute__((noinline)) void work(int n) { for (int i = 0; i < n; i++) kept = inlined(1024); }\n\
    int main(void) { leak_small(3000); leak_large(20); work(10); return 0; }\n";

fn run(folder: &Path, program: &str, words: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(program);
    command.args(words).current_dir(folder).stdin(Stdio::null()).env("MALLOW_SYMBOL_CACHE", "");
    let output = command.envs(environment.iter().copied()).output();
    let output = output.unwrap_or_else(|_| panic!("{program} is installed, with `cargo xtask packages`"));
    assert!(output.status.success(), "{program} {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn text(output: Output) -> String {
    String::from_utf8(output.stdout).unwrap()
}

fn mallow(folder: &Path, words: &[&str]) -> Output {
    run(folder, env!("CARGO_BIN_EXE_mallow"), words, &[])
}

/// Builds the program `app` in a folder whose name can be searched for, and has it write `dump.heap` there.
fn dump(folder: &Path, library: &str, variable: &str, value: &str) {
    fs::create_dir(folder.join("folder-of-eve")).unwrap();
    fs::write(folder.join("folder-of-eve/app.c"), SOURCE).unwrap();
    let words =
        ["-g", "-O1", "-fno-optimize-sibling-calls", "-o", "folder-of-eve/app", "folder-of-eve/app.c"];
    run(folder, "gcc", &words, &[]);
    let library = format!("/usr/lib/x86_64-linux-gnu/{library}");
    let value = value.replace("PREFIX", folder.join("written").to_str().unwrap());
    run(folder, "folder-of-eve/app", &[], &[("LD_PRELOAD", &library), (variable, &value)]);
    let written = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let heap = written.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "heap"));
    fs::rename(heap.expect("the allocator wrote its dump"), folder.join("dump.heap")).unwrap();
}

fn jemalloc(folder: &Path) {
    let options = "prof:true,prof_final:true,lg_prof_sample:0,prof_prefix:PREFIX";
    dump(folder, "libjemalloc.so.2", "MALLOC_CONF", options);
}

fn gperftools(folder: &Path) {
    dump(folder, "libtcmalloc.so.4", "HEAPPROFILE", "PREFIX");
}

/// The sites of the program: the innermost function, its line, its caller, and the bytes.
fn sites(folder: &Path, file: &str, more: &[&str]) -> Vec<(String, u64, String, u64)> {
    let report = text(mallow(folder, &[&["report", "--json", file], more].concat()));
    let report: Value = serde_json::from_str(&report).unwrap();
    let own = report["sites"].as_array().unwrap().iter().filter(|site| {
        let module = site["frames"][0]["module"].as_str().unwrap_or_default();
        module.ends_with("/app")
    });
    let of = |site: &Value| {
        let function = |frame: usize| site["frames"][frame]["function"].as_str().unwrap().to_owned();
        let line = site["frames"][0]["line"].as_u64().unwrap_or(0);
        (function(0), line, function(1), site["leaked_bytes"].as_u64().unwrap())
    };
    let mut sites: Vec<_> = own.map(of).collect();
    sites.sort();
    sites
}

fn expected(small: u64) -> Vec<(String, u64, String, u64)> {
    let site =
        |function: &str, line, caller: &str, bytes| (function.to_owned(), line, caller.to_owned(), bytes);
    vec![
        site("inlined", 5, "work", 10_240),
        site("leak_large", 4, "main", 81_920),
        site("leak_small", 3, "main", small),
    ]
}

#[test]
fn a_dump_of_jemalloc_has_the_names_that_jeprof_shows() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    jemalloc(folder);
    // jemalloc counts its size classes.
    assert_eq!(sites(folder, "dump.heap", &["--open-files"]), expected(96_000));
    let shown = text(run(folder, "jeprof", &["--text", "folder-of-eve/app", "dump.heap"], &[]));
    for function in ["leak_small", "leak_large", "inlined (inline)", "work"] {
        assert!(shown.lines().any(|line| line.ends_with(&format!("% {function}"))), "{function}:\n{shown}");
    }
    mallow(folder, &["import", "--open-files", "dump.heap", "-o", "dump.mallow"]);
    assert_eq!(sites(folder, "dump.mallow", &[]), expected(96_000));
}

#[test]
fn a_dump_of_gperftools_has_the_names_that_pprof_shows() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    gperftools(folder);
    assert_eq!(sites(folder, "dump.heap", &["--open-files"]), expected(72_000));
    let shown = text(run(folder, "google-pprof", &["--text", "folder-of-eve/app", "dump.heap"], &[]));
    for function in ["leak_small", "leak_large", "work"] {
        assert!(shown.lines().any(|line| line.ends_with(&format!("% {function}"))), "{function}:\n{shown}");
    }
}

/// The lines of `go tool pprof -top` after the file's own head.
fn top(folder: &Path, file: &str) -> Vec<String> {
    let words = ["tool", "pprof", "-sample_index=inuse_space", "-top", "folder-of-eve/app", file];
    let shown = text(run(folder, "go", &words, &[]));
    let lines: Vec<String> =
        shown.lines().skip_while(|line| !line.contains("flat%")).map(str::to_owned).collect();
    assert!(lines.len() > 3, "{shown}");
    lines
}

/// An export without names keeps the places of the files, so that pprof finds names as it does in the dump itself.
#[test]
fn pprof_names_an_export_as_it_names_the_dump() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    gperftools(folder);
    mallow(folder, &["export", "dump.heap", "--format", "pprof", "-o", "bare.pb"]);
    let theirs = top(folder, "dump.heap");
    assert!(theirs.iter().any(|line| line.ends_with("  leak_small")), "{theirs:?}");
    assert_eq!(top(folder, "bare.pb"), theirs);
}

#[test]
fn a_dump_has_no_file_opened_that_it_names_unless_asked() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    jemalloc(folder);
    let opened = |more: &[&str]| {
        let strace =
            ["-f", "-o", "calls", "-e", "trace=%file", env!("CARGO_BIN_EXE_mallow"), "report", "dump.heap"];
        let output = run(folder, "strace", &[&strace[..], more].concat(), &[]);
        let calls = fs::read_to_string(folder.join("calls")).unwrap();
        let warned = String::from_utf8(output.stderr.clone()).unwrap();
        (calls.contains("folder-of-eve"), warned, text(output))
    };
    let (is_opened, warned, report) = opened(&[]);
    assert!(!is_opened && !report.contains("leak_small"), "{report}");
    let expected = "dump.heap has addresses instead of names; --open-files looks the names up in the files that it says the \
                    addresses are of";
    assert!(warned.contains(expected), "{warned}");
    assert!(report.contains("--open-files looks the names up in them"), "{report}");
    let (is_opened, warned, report) = opened(&["--open-files"]);
    assert!(
        is_opened && report.contains("leak_small") && !warned.contains("has addresses"),
        "{warned}\n{report}"
    );
}

/// A program that was built again after the dump was written may have other functions at these addresses.
#[test]
fn a_program_that_is_newer_than_its_dump_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    gperftools(folder);
    run(folder, "touch", &["-d", "2020-01-01", "dump.heap"], &[]);
    let warned = String::from_utf8(mallow(folder, &["report", "--open-files", "dump.heap"]).stderr).unwrap();
    assert!(
        warned.contains("folder-of-eve/app") && warned.contains("names may be of another build"),
        "{warned}"
    );
}
