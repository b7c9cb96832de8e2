//! Kept answers: what comes back, and what damage does.

use super::*;
use proptest::prelude::*;

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
        problem: problem.map(str::to_owned),
    }
}

/// Adds all of the answers.
fn add(folder: &Folder, module: &str, answers: &Answers) {
    let all: Vec<u64> = answers.frames.keys().copied().collect();
    folder.add(module, answers, &all);
}

fn bytes_of(answers: &Answers) -> Vec<u8> {
    let frames = answers.frames.iter().map(|(svma, frames)| (*svma, &frames[..])).collect();
    encode(&frames, answers.problem.as_deref(), "id")
}

#[test]
fn what_is_added_is_read_by_its_identity_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = Folder::new(scratch.path().join("names"));
    let first = answers(&[(5, &[frame("a", Some(7)), frame("b", None)]), (9, &[frame("c", Some(1))])], None);
    add(&folder, "module", &first);
    add(&folder, "module", &answers(&[(7, &[frame("d", None)])], Some("stripped")));
    let read = folder.read("module", &[5, 6, 7]);
    assert_eq!(read.frames.len(), 2);
    assert_eq!(read.frames[&5], first.frames[&5]);
    assert_eq!((&read.frames[&7][0].function[..], read.problem.as_deref()), ("d", Some("stripped")));
    assert_eq!(folder.read("other module", &[5]), Answers::default());
    let other_build = Folder { own: "another build".into(), ..folder.clone() };
    assert_eq!(other_build.read("module", &[5]), Answers::default());
}

#[test]
fn a_damaged_file_gives_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = Folder::new(scratch.path().to_owned());
    add(&folder, "module", &answers(&[(5, &[frame("a", Some(7))])], None));
    let file = folder.file(&folder.full_identity("module"));
    let whole = fs::read(&file).unwrap();
    for at in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x41;
        fs::write(&file, &damaged).unwrap();
        assert_eq!(folder.read("module", &[5]), Answers::default(), "byte {at}");
        fs::write(&file, &whole[..at]).unwrap();
        assert_eq!(folder.read("module", &[5]), Answers::default(), "cut at {at}");
    }
}

/// With a checksum that fits, so that the parser itself is met.
#[test]
fn bytes_of_any_kind_are_read_without_harm() {
    let whole = bytes_of(&answers(&[(5, &[frame("a", Some(7))]), (6, &[])], Some("p")));
    for at in 12..whole.len() {
        for byte in [0, 1, 0x7f, 0xff] {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            let checksum = crc32fast::hash(&damaged[12..]).to_le_bytes();
            damaged[8..12].copy_from_slice(&checksum);
            let _ = (decode(&damaged, "id", None), decode(&damaged, "id", Some(&[5, 6])));
        }
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
                    assert!(folder.read("module", &[number * 100 + round]).frames.len() <= 1);
                }
            });
        }
    });
    let all = folder.open(&folder.full_identity("module")).unwrap();
    assert!(!decode(&all, &folder.full_identity("module"), None).unwrap().frames.is_empty());
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1, "nothing is left beside it");
}

proptest! {
    #[test]
    fn any_answers_come_back(
        frames in prop::collection::hash_map(any::<u64>(), prop::collection::vec(
            (any::<String>(), any::<Option<String>>(), prop::option::of(1u32..), any::<bool>()), 0..4), 0..20),
        problem: Option<String>,
    ) {
        let of = |(function, file, line, inlined): (String, Option<String>, Option<u32>, bool)| {
            Frame { function, module: file.clone(), file, line, inlined, ..Frame::default() }
        };
        let frames: FxHashMap<u64, Vec<Frame>> =
            frames.into_iter().map(|(svma, frames)| (svma, frames.into_iter().map(of).collect())).collect();
        let all: Vec<u64> = frames.keys().copied().collect();
        let answers = Answers { frames, problem };
        let bytes = bytes_of(&answers);
        prop_assert_eq!(decode(&bytes, "id", None), Some(answers.clone()));
        prop_assert_eq!(decode(&bytes, "id", Some(&all)), Some(answers));
    }
}
