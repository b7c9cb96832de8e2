//! Answers that are kept are those that the files give, and are given up when the files change.

use mallow_base::Frame;
use mallow_symbols::{ModuleKey, SearchPaths, Symbolizer};
use std::path::Path;
use std::process::Command;

const SOURCE: &str = "static inline __attribute__((always_inline)) int inner(int x) { return x * x; }\n\
    int outer(int x) { return inner(x + 1) + 3; }\n\
    int main(int argc, char **argv) { (void)argv; return outer(argc); }\n";

fn run(program: &str, words: &[&str]) {
    assert!(Command::new(program).args(words).status().unwrap().success(), "{program} {words:?}");
}

fn build(folder: &Path, source: &str) -> ModuleKey {
    let (file, program) = (folder.join("a.c"), folder.join("a"));
    std::fs::write(&file, source).unwrap();
    run("cc", &["-g", "-O2", "-Wl,--build-id", "-o", program.to_str().unwrap(), file.to_str().unwrap()]);
    ModuleKey { path: program.to_str().unwrap().to_owned(), build_id: Vec::new() }
}

/// What is found with the kept answers of this folder, and how many addresses were looked up for it.
fn ask(folder: &Path, module: &ModuleKey, svmas: &[u64]) -> (Vec<Vec<Frame>>, u64, Vec<String>) {
    let mut symbolizer = Symbolizer::new(SearchPaths::default()).keeping(folder.join("names"));
    let frames = symbolizer.resolve(module, svmas);
    (frames, symbolizer.looked_up(), symbolizer.warnings().to_vec())
}

#[test]
fn kept_answers_are_those_of_the_file_while_it_is_the_same() {
    let scratch = tempfile::tempdir().unwrap();
    let module = build(scratch.path(), SOURCE);
    // All of the program's code: names, lines, inlined calls, and addresses without any.
    let svmas: Vec<u64> = (0x1000..0x1400).chain([0x10, 0xffff_ffff]).collect();
    let plain = Symbolizer::new(SearchPaths::default()).resolve(&module, &svmas);
    assert!(plain.iter().flatten().any(|frame| frame.inlined && frame.function == "inner"), "{plain:?}");
    assert_eq!(ask(scratch.path(), &module, &svmas[..500]).1, 500);
    assert_eq!(ask(scratch.path(), &module, &svmas[..500]), (plain[..500].to_vec(), 0, vec![]));
    let rest = svmas.len() as u64 - 500;
    assert_eq!(ask(scratch.path(), &module, &svmas), (plain.clone(), rest, vec![]));
    assert_eq!(ask(scratch.path(), &module, &svmas), (plain, 0, vec![]));

    let other = build(scratch.path(), &SOURCE.replace("inner", "other"));
    let (frames, looked_up, _) = ask(scratch.path(), &other, &svmas);
    assert_eq!(looked_up, svmas.len() as u64, "another file has lain there");
    assert!(frames.iter().flatten().any(|frame| frame.function == "other"));
}

#[test]
fn what_was_missing_is_said_each_time_and_a_debug_file_that_comes_later_is_used() {
    let scratch = tempfile::tempdir().unwrap();
    let module = build(scratch.path(), SOURCE);
    let svmas: Vec<u64> = (0x1000..0x1400).collect();
    let whole = Symbolizer::new(SearchPaths::default()).resolve(&module, &svmas);
    let debug = format!("{}.debug", module.path);
    run("objcopy", &["--only-keep-debug", &module.path, &debug]);
    run("objcopy", &["--strip-all", &format!("--add-gnu-debuglink={debug}"), &module.path]);
    std::fs::rename(&debug, scratch.path().join("elsewhere")).unwrap();
    let stripped = ask(scratch.path(), &module, &svmas);
    assert!(stripped.2[0].contains("Install its debug package"), "{:?}", stripped.2);
    let again = ask(scratch.path(), &module, &svmas);
    assert_eq!((&again.0, again.1, &again.2), (&stripped.0, 0, &stripped.2));
    std::fs::rename(scratch.path().join("elsewhere"), &debug).unwrap();
    assert_eq!(ask(scratch.path(), &module, &svmas).0, whole);
}
