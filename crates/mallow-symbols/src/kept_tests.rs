//! Kept answers: what comes back, and what damage does.

use super::*;
use crate::Problem;
use crate::search::TriedFile;

fn frame(function: &str, line: Option<u32>) -> Frame {
    Frame {
        function: function.into(),
        file: line.map(|_| "/src/ä.c".into()),
        line,
        module: Some("/bin/x".into()),
        inlined: line == Some(7),
        ..Frame::default()
    }
}

fn answers(of: &[(u64, &[Frame])], problem: Option<&str>) -> Answers {
    Answers {
        frames: of.iter().map(|(svma, frames)| (*svma, frames.to_vec())).collect(),
        problem: problem.map(|sentence| Problem::Other(sentence.to_owned())),
        tried: vec![absent("/nonexistent/debug/file")],
    }
}

fn absent(path: &str) -> TriedFile {
    TriedFile { path: path.into(), identity: None, outcome: "it is not there".into() }
}

fn module(path: &str) -> ModuleKey {
    ModuleKey { path: path.into(), build_id: vec![1, 2] }
}

/// Adds all of the answers.
fn add(folder: &Folder, path: &str, answers: &Answers) {
    let all: Vec<u64> = answers.frames.keys().copied().collect();
    folder.add(&AddressQuery { module: &module(path), search: &SearchPaths::default() }, answers, &all);
}

fn read(folder: &Folder, module: &ModuleKey, svmas: &[u64]) -> Answers {
    folder.read(&AddressQuery { module, search: &SearchPaths::default() }, svmas)
}

#[test]
fn what_is_added_is_read_by_its_identity_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = Folder::new(scratch.path().join("names"));
    let first = answers(&[(5, &[frame("a", Some(7)), frame("b", None)]), (9, &[frame("c", Some(1))])], None);
    add(&folder, "module", &first);
    add(&folder, "module", &answers(&[(7, &[frame("d", None)])], Some("stripped")));
    let known = read(&folder, &module("module"), &[5, 6, 7]);
    assert_eq!(known.frames.len(), 2);
    assert_eq!(known.frames[&5], first.frames[&5]);
    assert_eq!(
        (&known.frames[&7][0].function[..], known.problem),
        ("d", Some(Problem::Other("stripped".into())))
    );
    assert_eq!(read(&folder, &module("other module"), &[5]), Answers::default());
    let other = ModuleKey { build_id: vec![3], ..module("module") };
    assert_eq!(read(&folder, &other, &[5]), Answers::default(), "another build of the module");
    let other_build = Folder { own: "another build".into(), ..folder.clone() };
    assert_eq!(read(&other_build, &module("module"), &[5]), Answers::default(), "another build of ours");
    let elsewhere = SearchPaths { sysroot: Some("/mnt".into()), ..SearchPaths::default() };
    let question = AddressQuery { module: &module("module"), search: &elsewhere };
    assert_eq!(folder.read(&question, &[5]), Answers::default(), "files from elsewhere");
    let search = SearchPaths::default();
    assert_eq!((folder.has("module", &search), folder.has("other module", &search)), (true, false));
}

#[test]
fn a_file_that_comes_goes_or_changes_makes_answers_old() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = Folder::new(scratch.path().join("names"));
    let [there, missing] = ["there", "missing"].map(|name| scratch.path().join(name));
    fs::write(&there, "1").unwrap();
    let tried = [&there, &missing].map(|path| TriedFile {
        path: path.clone(),
        identity: identity(path),
        outcome: String::new(),
    });
    let known = Answers { tried: tried.to_vec(), ..answers(&[(5, &[frame("a", None)])], None) };
    let is_known = || read(&folder, &module("module"), &[5]).frames.len() == 1;
    add(&folder, "module", &known);
    assert!(is_known());
    fs::write(&missing, "").unwrap();
    assert!(!is_known());
    fs::remove_file(&missing).unwrap();
    assert!(is_known());
    fs::write(&there, "12").unwrap();
    assert!(!is_known());
    // What was found in the old file is not added to.
    let tried = vec![TriedFile { identity: identity(&there), ..tried[0].clone() }];
    add(&folder, "module", &Answers { tried, ..answers(&[(6, &[frame("b", None)])], None) });
    assert_eq!(read(&folder, &module("module"), &[5, 6]).frames.len(), 1);
}

#[test]
fn a_damaged_file_gives_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = Folder::new(scratch.path().to_owned());
    add(&folder, "module", &answers(&[(5, &[frame("a", Some(7))])], None));
    let file = folder.file("module", &SearchPaths::default());
    let whole = fs::read(&file).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x41;
        fs::write(&file, &damaged).unwrap();
        assert_eq!(read(&folder, &module("module"), &[5]), Answers::default(), "byte {at}");
        fs::write(&file, &whole[..at]).unwrap();
        assert_eq!(read(&folder, &module("module"), &[5]), Answers::default(), "cut at {at}");
    }
}

#[test]
fn several_writers_leave_a_whole_file() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = Folder::new(scratch.path().to_owned());
    std::thread::scope(|scope| {
        for number in 0..8 {
            let folder = &folder;
            scope.spawn(move || {
                for round in 0..20 {
                    add(folder, "module", &answers(&[(number * 100 + round, &[frame("f", None)])], None));
                    assert!(read(folder, &module("module"), &[number * 100 + round]).frames.len() <= 1);
                }
            });
        }
    });
    let (module, search) = (module("module"), SearchPaths::default());
    let all = folder.current(&AddressQuery { module: &module, search: &search }, None).unwrap();
    assert!(!all.frames.is_empty());
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1, "nothing is left beside it");
}

/// Fills a folder with files of the largest size, which take no room on the disk, each written a minute after the one before. Returns their names.
fn fill(path: &Path, count: u64) -> Vec<PathBuf> {
    let begin = SystemTime::now() - std::time::Duration::from_secs(60 * 60);
    let files = (0..count).map(|index| {
        let place = path.join(format!("{index}.names"));
        let file = File::create(&place).unwrap();
        file.set_len(FILE_BYTES_MAX).unwrap();
        file.set_modified(begin + std::time::Duration::from_secs(60 * index)).unwrap();
        place
    });
    files.collect()
}

#[test]
fn a_full_folder_gives_up_what_was_not_used_for_longest_until_half_of_it_is_free() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = Folder::new(scratch.path().join("names"));
    let some = answers(&[(5, &[frame("a", None)])], None);
    add(&folder, "module", &some);
    let full = FOLDER_BYTES_MAX / FILE_BYTES_MAX;
    // A file of another module is new: its writer looks. One byte less than is too much stays.
    fs::remove_file(&fill(&folder.path, full)[0]).unwrap();
    add(&folder, "second module", &some);
    assert_eq!(fs::read_dir(&folder.path).unwrap().count() as u64, full - 1 + 2);
    let files = fill(&folder.path, full);
    add(&folder, "third module", &some);
    let there: Vec<bool> = files.iter().map(|file| file.exists()).collect();
    // Beside half of the room, which the kept answers have a part of, three of these files fit.
    assert_eq!(there, [false, false, false, false, false, true, true, true]);
    for path in ["module", "second module", "third module"] {
        assert_eq!(read(&folder, &module(path), &[5]).frames[&5], some.frames[&5], "{path}");
    }
}

#[test]
fn who_only_adds_to_what_is_there_looks_for_room_too_but_not_each_time() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = Folder::new(scratch.path().join("names"));
    let some = answers(&[(5, &[frame("a", None)])], None);
    add(&folder, "module", &some);
    let files = fill(&folder.path, FOLDER_BYTES_MAX / FILE_BYTES_MAX);
    let is_full = || files[0].exists();
    let added = (0..10_000).take_while(|_| is_full()).inspect(|_| add(&folder, "module", &some)).count();
    assert!((1..10_000).contains(&added), "{added}");
}
