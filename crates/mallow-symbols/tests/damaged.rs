//! Damaged files give fewer names, never a panic, and always one answer per address.

use std::fs;
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::OnceLock;

use crate::toolchain::{C_FRAMES, call_site, compile_c, key, lines, search, text};
use mallow_symbols::{ModuleKey, SearchPaths, Symbolizer};
use object::{Object, ObjectSection};
use proptest::prelude::*;

/// A small whole program: its bytes, and addresses within and around its code.
fn program() -> &'static (Vec<u8>, Vec<u64>) {
    static PROGRAM: OnceLock<(Vec<u8>, Vec<u64>)> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // No build id: damage to it would only show that other builds are refused.
        let app = compile_c(folder.path(), &["-Wl,--build-id=none"]);
        let call = call_site(&app, "outer", "malloc");
        let around = (call - 0x200..call + 0x200).step_by(7);
        let bytes = fs::read(&app).expect("the program is there");
        (bytes, around.chain([0, call, 0x1000, u64::MAX]).collect())
    })
}

/// Resolves the addresses against these bytes; a panic anywhere fails the test that called.
fn resolve(bytes: &[u8]) -> (usize, Vec<String>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let app = folder.path().join("app");
    fs::write(&app, bytes).expect("the temporary folder is writable");
    let module = ModuleKey { path: text(&app).to_owned(), build_id: Vec::new() };
    let search = SearchPaths { debug_roots: vec![folder.path().to_owned()], ..SearchPaths::default() };
    let mut symbolizer = Symbolizer::new(search);
    let frames = symbolizer.resolve(&module, &program().1);
    assert_eq!(frames.len(), program().1.len());
    assert!(frames.iter().all(|frames| !frames.is_empty()));
    assert!(frames.iter().all(|frames| frames.last().is_some_and(|frame| !frame.inlined)));
    (frames.iter().map(Vec::len).max().unwrap_or(0), symbolizer.warnings().to_vec())
}

#[test]
fn the_whole_program_resolves() {
    assert_eq!(resolve(&program().0), (3, Vec::new()));
}

#[test]
fn what_is_not_elf_says_so() {
    for bytes in [&b""[..], b"\x7fELF", b"#!/bin/sh\n", &program().0[..100]] {
        let (deepest, warnings) = resolve(bytes);
        assert_eq!(deepest, 1);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].contains("its frames are addresses"), "{warnings:?}");
    }
}

#[test]
fn a_folder_or_a_device_is_not_read() {
    for path in ["/", "/dev/zero"] {
        let module = ModuleKey { path: path.to_owned(), build_id: Vec::new() };
        let mut symbolizer = Symbolizer::new(SearchPaths::default());
        assert_eq!(symbolizer.resolve(&module, &[1])[0][0].function, "0x1");
        assert!(symbolizer.warnings()[0].contains("not a regular file"), "{:?}", symbolizer.warnings());
    }
    assert!(Path::new("/dev/zero").exists());
}

/// A name is asked for twice, and in between somebody who may write to the file empties it.
#[test]
fn a_file_that_is_cut_short_while_it_is_open_has_its_names() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let app = compile_c(folder.path(), &[]);
    fs::set_permissions(&app, fs::Permissions::from_mode(0o757)).expect("it is ours");
    let call = call_site(&app, "outer", "malloc");
    let mut symbolizer = Symbolizer::new(search(folder.path()));
    let module = key(&app);
    let before = symbolizer.resolve(&module, &[call]);
    assert_eq!(lines(&before[0]), C_FRAMES);
    fs::OpenOptions::new().write(true).open(&app).and_then(|file| file.set_len(0)).expect("it is ours");
    assert_eq!(symbolizer.resolve(&module, &[call]), before);
    assert_eq!(symbolizer.warnings(), [""; 0]);
}

/// Where the program's DWARF lies in its file: from the first debug section to the end of the last.
fn debug_range() -> Range<usize> {
    let file = object::File::parse(&*program().0).expect("the program is whole");
    let debug =
        file.sections().filter(|section| section.name().is_ok_and(|name| name.starts_with(".debug_")));
    let ranges: Vec<_> = debug.filter_map(|section| section.file_range()).collect();
    let start = ranges.iter().map(|&(start, _)| start).min().expect("the program has debug information");
    let end = ranges.iter().map(|&(start, size)| start + size).max().unwrap_or(start);
    start as usize..end as usize
}

#[test]
fn damaged_debug_information_leaves_the_symbol_table() {
    let mut bytes = program().0.clone();
    bytes[debug_range()].fill(0xfe);
    let (deepest, warnings) = resolve(&bytes);
    assert_eq!(deepest, 1);
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].starts_with("the debug information of "), "{warnings:?}");
}

proptest! {
    // A failure is printed with its input; a file of them would not be found here.
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_bytes_never_panic(flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..200)) {
        let mut bytes = program().0.clone();
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        resolve(&bytes);
    }

    #[test]
    fn flipped_bytes_in_debug_sections_never_panic(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let mut bytes = program().0.clone();
        let range = debug_range();
        for (at, value) in flips {
            bytes[range.start + at.index(range.len())] = value;
        }
        resolve(&bytes);
    }

    #[test]
    fn truncated_files_never_panic(length in any::<prop::sample::Index>()) {
        let bytes = &program().0;
        resolve(&bytes[..length.index(bytes.len())]);
    }

    #[test]
    fn any_name_demangles(name in "(_R|_ZN|_Z)?[ -~]{0,60}") {
        mallow_symbols::demangle(&name);
    }
}
