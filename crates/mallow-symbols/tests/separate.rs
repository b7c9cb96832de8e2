//! Debug files that lie apart from the binary, and binaries that are not the ones that ran.

use std::fs;
use std::path::{Path, PathBuf};

use crate::toolchain::{
    C_FRAMES, build_id, call_site, compile_c, key, lines, resolve_one, run, search, text,
};
use mallow_symbols::{ModuleKey, SearchPaths, Symbolizer};

/// A program in `bin/`, its debug root in `debug/`, and the address of a call with two inlined frames.
struct Case {
    folder: tempfile::TempDir,
    app: PathBuf,
    root: PathBuf,
    svma: u64,
}

impl Case {
    fn new(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let bin = folder.path().join("bin");
        let root = folder.path().join("debug");
        for new in [&bin, &root] {
            fs::create_dir(new).expect("the temporary folder is writable");
        }
        let app = compile_c(&bin, flags);
        let svma = call_site(&app, "outer", "malloc");
        Self { folder, app, root, svma }
    }

    /// Moves the debug information into `bin/app.debug` and strips the program.
    fn strip(&self) -> PathBuf {
        let bin = self.bin();
        run(bin, "objcopy", &["--only-keep-debug", "app", "app.debug"]);
        run(bin, "objcopy", &["--strip-all", "app"]);
        bin.join("app.debug")
    }

    fn bin(&self) -> &Path {
        self.app.parent().expect("the program lies in a folder")
    }

    fn build_id_place(&self) -> PathBuf {
        build_id_place(&self.root, &build_id(&self.app))
    }

    fn resolve(&self, module: &ModuleKey) -> (Vec<String>, Vec<String>) {
        let (frames, warnings) = resolve_one(search(&self.root), module, self.svma);
        (lines(&frames), warnings)
    }

    fn assert_whole(&self, module: &ModuleKey) {
        let (frames, warnings) = self.resolve(module);
        assert_eq!(warnings, [""; 0]);
        assert_eq!(frames, C_FRAMES);
    }

    fn assert_address(&self, module: &ModuleKey, warning: &str) {
        let (frames, warnings) = self.resolve(module);
        assert_eq!(frames, [format!("{:#x} ?:?", self.svma)]);
        assert_eq!(warnings, [warning]);
    }
}

fn build_id_place(root: &Path, id: &[u8]) -> PathBuf {
    let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    root.join(".build-id").join(&digits[..2]).join(format!("{}.debug", &digits[2..]))
}

fn place(from: &Path, to: &Path) {
    fs::create_dir_all(to.parent().expect("a file lies in a folder")).expect("the folder can be made");
    fs::rename(from, to).expect("the file can be moved");
}

#[test]
fn by_build_id() {
    let case = Case::new(&[]);
    let debug = case.strip();
    place(&debug, &case.build_id_place());
    case.assert_whole(&key(&case.app));
    let unknown = ModuleKey { build_id: Vec::new(), ..key(&case.app) };
    case.assert_whole(&unknown);
}

#[test]
fn by_debuglink_in_each_place() {
    let case = Case::new(&["-Wl,--build-id=none"]);
    let debug = case.strip();
    run(case.bin(), "objcopy", &["--add-gnu-debuglink=app.debug", "app"]);
    let module = key(&case.app);
    assert_eq!(module.build_id, [0; 0]);
    case.assert_whole(&module);

    let hidden = case.bin().join(".debug/app.debug");
    place(&debug, &hidden);
    case.assert_whole(&module);

    let inside = case.bin().strip_prefix("/").expect("temporary paths are absolute");
    let global = case.root.join(inside).join("app.debug");
    place(&hidden, &global);
    case.assert_whole(&module);

    // One byte more and it is another file.
    let mut bytes = fs::read(&global).expect("the debug file is there");
    bytes.push(0);
    fs::write(&global, bytes).expect("the debug file is writable");
    let warning = format!(
        "{} has no symbols at all, so its frames are addresses. Install its debug package (-dbgsym, -dbg or \
         -debuginfo), or build it with -g and without -s.",
        case.app.display()
    );
    case.assert_address(&module, &warning);
}

#[test]
fn compressed_debug_files() {
    let case = Case::new(&[]);
    let debug = case.strip();
    run(case.bin(), "objcopy", &["--compress-debug-sections", "app.debug"]);
    place(&debug, &case.build_id_place());
    case.assert_whole(&key(&case.app));
}

#[test]
fn a_debug_file_of_another_build_is_not_used() {
    let case = Case::new(&[]);
    case.strip();
    let other = Case::new(&["-fno-inline", "-DOTHER"]);
    assert_ne!(build_id(&case.app), build_id(&other.app));
    place(&other.app, &case.build_id_place());
    let (frames, warnings) = case.resolve(&key(&case.app));
    assert_eq!(frames, [format!("{:#x} ?:?", case.svma)]);
    assert_eq!(warnings.len(), 1);
}

#[test]
fn a_rebuilt_program_is_not_used() {
    let case = Case::new(&[]);
    let ran = key(&case.app);
    let place_of_ran = case.build_id_place();
    let debug = case.bin().join("kept");
    run(case.bin(), "objcopy", &["--only-keep-debug", "app", text(&debug)]);
    compile_c(case.bin(), &["-O0"]);
    let warning = format!(
        "{} is not the build that ran: its build id is {}, recorded was {}. Its symbols were not used and its frames \
         are addresses. Restore the file that ran, or put its debug file at {}.",
        case.app.display(),
        hex(&build_id(&case.app)),
        hex(&ran.build_id),
        place_of_ran.display()
    );
    case.assert_address(&ran, &warning);

    place(&debug, &place_of_ran);
    case.assert_whole(&ran);
    let deleted = ModuleKey { path: format!("{} (deleted)", ran.path), ..ran };
    case.assert_whole(&deleted);
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_file_that_is_gone_is_replaced_by_its_debug_file() {
    let case = Case::new(&[]);
    let module = key(&case.app);
    let kept = case.folder.path().join("kept");
    fs::rename(&case.app, &kept).expect("the program can be moved");
    let place_of_debug = build_id_place(&case.root, &module.build_id);
    let warning = format!(
        "{} cannot be read (No such file or directory (os error 2)), so its frames are addresses. Put the file back, \
         or put its debug file at {}.",
        case.app.display(),
        place_of_debug.display()
    );
    case.assert_address(&module, &warning);
    place(&kept, &place_of_debug);
    case.assert_whole(&module);
}

#[test]
fn a_file_replaced_by_the_same_build_is_used() {
    let case = Case::new(&[]);
    let module = key(&case.app);
    let deleted = ModuleKey { path: format!("{} (deleted)", module.path), ..module };
    case.assert_whole(&deleted);
}

#[test]
fn warnings_come_once_per_module() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let gone =
        |name: &str| ModuleKey { path: text(&folder.path().join(name)).to_owned(), build_id: vec![7; 20] };
    let mut symbolizer = Symbolizer::new(search(folder.path()));
    for name in ["a", "b", "a"] {
        symbolizer.resolve(&gone(name), &[1]);
    }
    let warnings = symbolizer.warnings();
    let paths: Vec<_> = warnings.iter().map(|warning| warning.split(' ').next()).collect();
    let (a, b) = (gone("a").path, gone("b").path);
    assert_eq!(paths, [Some(a.as_str()), Some(b.as_str())]);
}

#[test]
fn a_sysroot_holds_programs_and_debug_files() {
    let case = Case::new(&[]);
    let id = build_id(&case.app);
    let debug = case.strip();
    let sysroot = case.folder.path().join("container");
    place(&case.app, &sysroot.join("opt/app"));
    place(&debug, &build_id_place(&sysroot.join("usr/lib/debug"), &id));
    let paths = SearchPaths { sysroot: Some(sysroot), ..SearchPaths::default() };
    let module = ModuleKey { path: "/opt/app".to_owned(), build_id: id };
    let (frames, warnings) = resolve_one(paths, &module, case.svma);
    assert_eq!(warnings, [""; 0]);
    assert_eq!(lines(&frames), C_FRAMES);
    assert!(frames.iter().all(|frame| frame.module.as_deref() == Some("/opt/app")));
}

/// dwz moves what two debug files share into a third.
#[test]
fn shared_debug_files_made_by_dwz() {
    let case = Case::new(&["-gdwarf-4"]);
    let debug = case.strip();
    fs::copy(&debug, case.bin().join("twin.debug")).expect("the debug file can be copied");
    run(case.bin(), "dwz", &["-m", "shared.debug", "-M", "../shared.debug", "app.debug", "twin.debug"]);
    let sections = run(case.bin(), "readelf", &["-SW", "app.debug"]);
    assert!(sections.contains(".gnu_debugaltlink"), "dwz shared nothing: {sections}");
    let shared = case.bin().join("shared.debug");
    let shared_id = build_id(&shared);
    place(&debug, &case.build_id_place());
    let beside =
        case.build_id_place().parent().and_then(Path::parent).map(|folder| folder.join("shared.debug"));
    let beside = beside.expect("a build id place has two folders");
    fs::rename(&shared, &beside).expect("the shared file can be moved");
    case.assert_whole(&key(&case.app));

    let by_id = build_id_place(&case.root, &shared_id);
    place(&beside, &by_id);
    case.assert_whole(&key(&case.app));

    fs::remove_file(&by_id).expect("the shared file can go");
    let (frames, warnings) = case.resolve(&key(&case.app));
    assert_ne!(frames, C_FRAMES);
    let expected = format!(
        "{} needs the shared debug file ../shared.debug (build id {}), which was not found; some of its names and lines \
         are missing. Install the debug package again, or put that file under a debug folder.",
        case.build_id_place().display(),
        hex(&shared_id)
    );
    assert_eq!(warnings, [expected]);
}
