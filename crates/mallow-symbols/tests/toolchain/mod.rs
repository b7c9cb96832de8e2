//! The compilers and binutils that make what the tests look at. A missing tool fails the test: these are the Debian
//! packages gcc, g++, binutils, dwz and libc6-dbg, and the Rust toolchain.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use mallow_base::Frame;
use mallow_symbols::{ModuleKey, SearchPaths, Symbolizer};

/// Runs a tool in `folder` and returns what it printed.
pub(crate) fn run(folder: &Path, command: &str, arguments: &[&str]) -> String {
    let output = Command::new(command).args(arguments).current_dir(folder).output();
    let output = output.unwrap_or_else(|error| panic!("{command} is needed by this test: {error}"));
    assert!(
        output.status.success(),
        "{command} {arguments:?} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Writes a source file and compiles it to `folder/app`.
pub(crate) fn compile(folder: &Path, compiler: &str, name: &str, source: &str, flags: &[&str]) -> PathBuf {
    fs::write(folder.join(name), source).expect("the temporary folder is writable");
    let mut arguments = vec!["-o", "app", name];
    arguments.extend(flags);
    run(folder, compiler, &arguments);
    folder.join("app")
}

/// The address of the first call of `callee` within `function` (both as objdump prints them).
pub(crate) fn call_site(binary: &Path, function: &str, callee: &str) -> u64 {
    let listing = run(Path::new("/"), "objdump", &["-d", "--no-show-raw-insn", text(binary)]);
    let header = format!("<{function}>:");
    let call = listing
        .lines()
        .skip_while(|line| !line.ends_with(&header))
        .find(|line| line.contains("call") && line.contains(callee))
        .unwrap_or_else(|| panic!("{function} does not call {callee}"));
    let address = call.trim().split(':').next().expect("a line begins with its address");
    u64::from_str_radix(address, 16).expect("objdump prints hexadecimal addresses")
}

pub(crate) fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are text")
}

/// The build id as `readelf -n` prints it; empty if there is none.
pub(crate) fn build_id(binary: &Path) -> Vec<u8> {
    let notes = run(Path::new("/"), "readelf", &["-n", text(binary)]);
    let digits = notes.lines().find_map(|line| line.trim().strip_prefix("Build ID: ")).unwrap_or("");
    (0..digits.len() / 2)
        .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).expect("a build id is hexadecimal"))
        .collect()
}

pub(crate) fn key(path: &Path) -> ModuleKey {
    ModuleKey { path: text(path).to_owned(), build_id: build_id(path) }
}

/// Search paths with one debug root of the test's own.
pub(crate) fn search(root: &Path) -> SearchPaths {
    SearchPaths { debug_roots: vec![root.to_owned()], ..SearchPaths::default() }
}

/// Frames of one address, and the warnings.
pub(crate) fn resolve_one(search: SearchPaths, module: &ModuleKey, svma: u64) -> (Vec<Frame>, Vec<String>) {
    let mut symbolizer = Symbolizer::new(search);
    let mut all = symbolizer.resolve(module, &[svma]);
    assert_eq!(all.len(), 1);
    (all.remove(0), symbolizer.warnings().to_vec())
}

/// Frames as `function file-name:line`, with `^` before inlined ones.
pub(crate) fn lines(frames: &[Frame]) -> Vec<String> {
    let show = |frame: &Frame| {
        let file = frame.file.as_deref().and_then(|file| file.rsplit('/').next()).unwrap_or("?");
        let line = frame.line.map_or_else(|| "?".to_owned(), |line| line.to_string());
        let mark = if frame.inlined { "^" } else { "" };
        format!("{mark}{} {file}:{line}", frame.function)
    };
    frames.iter().map(show).collect()
}

/// A C program in which `outer` calls malloc through two inlined functions.
pub(crate) const C_SOURCE: &str = "\
#include <stdlib.h>
static inline __attribute__((always_inline)) void *inner(unsigned long n) {
    return malloc(n);
}
static inline __attribute__((always_inline)) void *middle(unsigned long n) {
    return inner(n + 1);
}
__attribute__((noinline)) void *outer(unsigned long n) {
    return middle(n * 2);
}
int main(int argc, char **argv) {
    (void)argv;
    return outer(argc) == 0;
}
";

/// What the call of malloc in `outer` must resolve to.
pub(crate) const C_FRAMES: [&str; 3] = ["^inner app.c:3", "^middle app.c:6", "outer app.c:9"];

/// An executable without any symbol: no libraries, no exports, stripped.
pub(crate) fn compile_nameless(folder: &Path) -> PathBuf {
    let source = "void _start(void) { for (;;) {} }\n";
    compile(folder, "gcc", "app.c", source, &["-nostdlib", "-static", "-s", "-Wl,--build-id"])
}

/// Compiles [`C_SOURCE`] at -O2 with debug information; more flags may follow.
pub(crate) fn compile_c(folder: &Path, flags: &[&str]) -> PathBuf {
    let mut all = vec!["-g", "-O2", "-fno-optimize-sibling-calls", "-Wl,--build-id"];
    all.extend(flags);
    compile(folder, "gcc", "app.c", C_SOURCE, &all)
}
