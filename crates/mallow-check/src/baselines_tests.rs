//! The folder: what is put there comes back, and what cannot be used is said.

use super::*;
use mallow_gate::sample::{baseline, counts, environment};
use proptest::prelude::*;

fn sample() -> Baseline {
    baseline(&counts(Some(1000), &[1003; 10]))
}

fn folder() -> (tempfile::TempDir, Baselines) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let baselines = Baselines::open(folder.path().join("mallow/baselines")).expect("it need not be there");
    (folder, baselines)
}

fn entries(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder)
        .expect("it is there")
        .map(|entry| entry.expect("it can be read").file_name().to_string_lossy().into_owned());
    names.collect()
}

#[test]
fn a_folder_returns_the_baselines_that_were_stored() {
    let (_kept, baselines) = folder();
    assert_eq!(baselines.find("encode", &environment()), Ok(Found::None));
    assert_eq!(baselines.names(&environment()), Ok(Vec::new()));
    let path = baselines.write(&sample()).expect("it can be written");
    assert!(path.ends_with("mallow/baselines/x86_64-glibc2.36-native-libc-2cpu-c1/encode.json"), "{path:?}");
    assert_eq!(baselines.find("encode", &environment()), Ok(Found::Exact(Box::new(sample()))));
    assert_eq!(baselines.names(&environment()), Ok(vec![("encode".to_owned(), path.clone())]));
    let class = path.parent().expect("it has one");
    assert_eq!(entries(class), ["encode.json"], "nothing temporary stays");
    baselines.remove("encode", &environment()).expect("it is there");
    assert_eq!(baselines.find("encode", &environment()), Ok(Found::None));
}

#[test]
fn another_environments_baseline_is_found_as_such() {
    let (_kept, baselines) = folder();
    let mut other = sample();
    other.environment.processors = 8;
    baselines.write(&other).expect("it can be written");
    std::fs::write(
        baselines.path("x", &environment()).ancestors().nth(2).expect("it has one").join("README.md"),
        "hello",
    )
    .expect("it can be written");
    assert_eq!(baselines.find("encode", &environment()), Ok(Found::OtherEnvironment(vec![other])));
    assert_eq!(baselines.find("decode", &environment()), Ok(Found::None));
}

#[test]
fn what_cannot_be_used_in_a_folder_is_said() {
    let (kept, baselines) = folder();
    let path = baselines.write(&sample()).expect("it can be written");
    std::fs::copy(&path, path.with_file_name("decode.json")).expect("it can be copied");
    let error = baselines.find("decode", &environment()).map_err(|error| error.to_string());
    let shown = path.with_file_name("decode.json").display().to_string();
    assert_eq!(
        error,
        Err(format!("{shown} is the baseline of \"encode\", not of \"decode\": it was copied."))
    );
    std::fs::write(&path, [0xff, 0xfe]).expect("it can be written");
    let error = baselines.find("encode", &environment()).map_err(|error| error.to_string());
    let shown = path.display();
    assert_eq!(error, Err(format!("The baseline {shown} cannot be read: it is not text (byte 0).")));
    let file = kept.path().join("file");
    std::fs::write(&file, "").expect("it can be written");
    let error = Baselines::open(&file).map_err(|error| error.to_string());
    assert_eq!(error, Err(format!("{} is no folder for baselines.", file.display())));
}

#[test]
fn writing_the_same_leaves_the_file_alone() {
    let (_kept, baselines) = folder();
    let path = baselines.write(&sample()).expect("it can be written");
    let written = || std::fs::metadata(&path).and_then(|data| data.modified()).expect("it is there");
    let before = written();
    std::thread::sleep(std::time::Duration::from_millis(20));
    baselines.write(&sample()).expect("it can be written");
    assert_eq!(written(), before);
}

#[test]
fn names_of_tests_are_names_of_files() {
    let expected = [
        ("encode", "encode.json"),
        ("http.keep-alive_2", "http.keep-alive_2.json"),
        ("../a b", "%2e.%2fa%20b.json"),
        ("a%2f", "a%252f.json"),
        ("größe", "gr%c3%b6%c3%9fe.json"),
        ("", ".json"),
    ];
    for (test, file) in expected {
        assert_eq!(file_name(test), file);
    }
}

#[test]
fn ci_is_what_says_so() {
    let told = [None, Some(""), Some("0"), Some("false"), Some("true"), Some("1"), Some("woodpecker")];
    assert_eq!(told.map(is_ci), [false, false, false, false, true, true, true]);
}

proptest! {
    #[test]
    fn different_tests_have_different_files(a in "[a./%2f ]{0,5}", b in "[a./%2f ]{0,5}") {
        prop_assert_eq!(file_name(&a) == file_name(&b), a == b);
    }
}
