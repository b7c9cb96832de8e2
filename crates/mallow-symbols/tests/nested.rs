//! Debug information that nests calls without end costs names, never the program.

use crate::toolchain::{call_site, key, lines, resolve_one, run, search};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// A program of which `victim` has so many inlined calls, each within the one before. Each takes a byte of the file, and one for its end.
fn compile_nested(folder: &Path, calls: usize) -> PathBuf {
    let mut source = String::from(include_str!("nested.s"));
    writeln!(source, ".fill {calls}, 1, 3\n.fill {calls}, 1, 0\n.byte 0, 0\n.Lend:").expect("text grows");
    fs::write(folder.join("nested.s"), source).expect("the folder is writable");
    let program = "#include <stdlib.h>\nvoid *victim(void) { return malloc(7); }\nint main(void) { return victim() == 0; }\n";
    fs::write(folder.join("app.c"), program).expect("the folder is writable");
    run(folder, "gcc", &["-O0", "-Wl,--build-id", "-o", "app", "app.c", "nested.s"]);
    folder.join("app")
}

fn resolve(calls: usize) -> (Vec<String>, Vec<String>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let app = compile_nested(folder.path(), calls);
    let (frames, warnings) =
        resolve_one(search(folder.path()), &key(&app), call_site(&app, "victim", "malloc"));
    let app = app.display().to_string();
    (lines(&frames), warnings.iter().map(|warning| warning.replace(&app, "APP")).collect())
}

#[test]
fn what_compilers_nest_is_read() {
    // `dwarf_name` is what the debug information calls it, `victim` the table of symbols.
    assert_eq!(resolve(0), (vec!["dwarf_name ?:?".to_owned()], Vec::new()));
    assert_eq!(resolve(100), (vec!["dwarf_name ?:?".to_owned()], Vec::new()));
}

#[test]
fn millions_of_nested_calls_are_named_by_the_table_of_symbols() {
    let sentence = "the debug information of APP is damaged (its inlined calls are nested too deeply); some of its names or lines are missing. \
                    Install or build it again.";
    assert_eq!(resolve(3_000_000), (vec!["victim ?:?".to_owned()], vec![sentence.to_owned()]));
}
