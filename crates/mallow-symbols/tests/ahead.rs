//! Names that are looked up while a program runs are those that its files give when it has ended, whatever happened to them meanwhile.

use crate::toolchain::{call_site, compile_c, run};
use mallow_base::Frame;
use mallow_symbols::{Ahead, ModuleKey, SearchPaths, Symbolizer};
use std::path::Path;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn module(app: &Path) -> ModuleKey {
    ModuleKey { path: app.to_str().expect("the path is text").to_owned(), build_id: Vec::new() }
}

fn plain(module: &ModuleKey, svmas: &[u64]) -> (Vec<Vec<Frame>>, Vec<String>) {
    let mut symbolizer = Symbolizer::new(SearchPaths::default());
    let frames = symbolizer.resolve(module, svmas);
    (frames, symbolizer.warnings().to_vec())
}

/// Asks when the program has ended: what is said, and how many addresses had to be looked up then.
fn late(ahead: &Ahead, module: &ModuleKey, svmas: &[u64]) -> ((Vec<Vec<Frame>>, Vec<String>), u64) {
    let mut symbolizer = Symbolizer::new(SearchPaths::default()).sharing(ahead.clone());
    let frames = symbolizer.resolve(module, svmas);
    ((frames, symbolizer.warnings().to_vec()), symbolizer.looked_up())
}

/// Looks some addresses up while the program runs.
fn early(module: &ModuleKey, pieces: &[&[u64]]) -> Ahead {
    let ahead = Ahead::default();
    let mut symbolizer = Symbolizer::new(SearchPaths::default()).sharing(ahead.clone());
    pieces.iter().for_each(|piece| symbolizer.look_ahead(module, piece));
    ahead
}

fn svmas(app: &Path) -> Vec<u64> {
    let around = call_site(app, "outer", "malloc");
    (around - 0x100..around + 0x100).chain([0x10, 0xffff_ffff]).collect()
}

#[test]
fn what_was_found_early_is_not_looked_up_again_and_the_rest_is() {
    let folder = folder();
    let app = compile_c(folder.path(), &[]);
    let (module, svmas) = (module(&app), svmas(&app));
    let expected = plain(&module, &svmas);
    assert!(expected.0.iter().flatten().any(|frame| frame.inlined), "{expected:?}");
    for pieces in [vec![], vec![&svmas[..]], vec![&svmas[..100], &svmas[50..60], &svmas[200..400]]] {
        let found =
            pieces.iter().flat_map(|piece| piece.iter()).collect::<std::collections::BTreeSet<_>>().len();
        let ahead = early(&module, &pieces);
        assert_eq!(late(&ahead, &module, &svmas), (expected.clone(), (svmas.len() - found) as u64));
    }
}

#[test]
fn a_file_that_was_replaced_or_removed_meanwhile_is_what_it_is_at_the_end() {
    let folder = folder();
    let app = compile_c(folder.path(), &[]);
    let (module, svmas) = (module(&app), svmas(&app));
    let before = plain(&module, &svmas);
    let ahead = early(&module, &[&svmas]);
    // Another build, as an installation puts it there: a new file under the old name.
    let other = {
        std::fs::create_dir(folder.path().join("other")).expect("a folder");
        compile_c(&folder.path().join("other"), &["-O0"])
    };
    std::fs::rename(&other, &app).expect("the file can be replaced");
    let replaced = plain(&module, &svmas);
    assert_ne!(replaced, before);
    assert_eq!(late(&ahead, &module, &svmas), (replaced, svmas.len() as u64));

    let ahead = early(&module, &[&svmas]);
    std::fs::remove_file(&app).expect("the file can go");
    let removed = plain(&module, &svmas);
    assert!(removed.1[0].contains("cannot be read"), "{removed:?}");
    assert_eq!(late(&ahead, &module, &svmas).0, removed);
}

#[test]
fn a_build_that_is_not_the_one_that_ran_names_nothing_early_or_late() {
    let folder = folder();
    let app = compile_c(folder.path(), &["-Wl,--build-id"]);
    let svmas = svmas(&app);
    let module = ModuleKey { build_id: vec![1, 2, 3], ..module(&app) };
    let expected = plain(&module, &svmas);
    assert!(expected.1[0].contains("is not the build that ran"), "{expected:?}");
    assert_eq!(late(&early(&module, &[&svmas]), &module, &svmas).0, expected);
}

#[test]
fn a_debug_file_that_comes_meanwhile_is_used() {
    let folder = folder();
    let app = compile_c(folder.path(), &["-Wl,--build-id"]);
    let (module, svmas) = (module(&app), svmas(&app));
    let debug = folder.path().join("app.debug");
    run(folder.path(), "objcopy", &["--only-keep-debug", "app", "app.debug"]);
    run(folder.path(), "objcopy", &["--strip-all", "--add-gnu-debuglink=app.debug", "app"]);
    std::fs::rename(&debug, folder.path().join("elsewhere")).expect("the file can go");
    let ahead = early(&module, &[&svmas]);
    let stripped = plain(&module, &svmas);
    assert_eq!(late(&early(&module, &[&svmas]), &module, &svmas), (stripped.clone(), 0));
    std::fs::rename(folder.path().join("elsewhere"), &debug).expect("the file can come");
    let whole = plain(&module, &svmas);
    assert_ne!(whole, stripped);
    assert_eq!(late(&ahead, &module, &svmas).0, whole);
}

#[test]
fn what_files_beside_the_module_said_and_what_is_damaged_is_asked_again() {
    let folder = folder();
    let app = compile_c(folder.path(), &["-gsplit-dwarf", "-gdwarf-5"]);
    let (module, svmas) = (module(&app), svmas(&app));
    let ahead = early(&module, &[&svmas]);
    assert_eq!(late(&ahead, &module, &svmas), (plain(&module, &svmas), svmas.len() as u64));
}

#[test]
fn early_answers_are_kept_for_the_next_time_too() {
    let folder = folder();
    let app = compile_c(folder.path(), &[]);
    let (module, svmas) = (module(&app), svmas(&app));
    let (ahead, kept) = (Ahead::default(), folder.path().join("names"));
    let symbolizer = || Symbolizer::new(SearchPaths::default()).keeping(kept.clone());
    symbolizer().sharing(ahead.clone()).look_ahead(&module, &svmas);
    assert!(!kept.exists(), "nothing is written while the program runs");
    let mut at_the_end = symbolizer().sharing(ahead.clone());
    let expected = plain(&module, &svmas).0;
    assert_eq!((at_the_end.resolve(&module, &svmas), at_the_end.looked_up()), (expected.clone(), 0));
    let mut next_time = symbolizer();
    assert_eq!((next_time.resolve(&module, &svmas), next_time.looked_up()), (expected.clone(), 0));
    // And what is kept is not looked up early.
    let mut again = symbolizer().sharing(ahead.clone());
    again.look_ahead(&module, &svmas);
    assert_eq!(again.looked_up(), 0);
    assert_eq!(late(&ahead, &module, &svmas), ((expected, Vec::new()), 0));
}
