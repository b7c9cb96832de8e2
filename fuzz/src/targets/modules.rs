//! What files of programs say, what somebody answers who reads them, and suppressions.

use super::said::said;
use mallow_profile::Suppression;
use mallow_symbols::{Answer, ModuleKey, SearchPaths, Symbolizer, embedded_suppressions_in, functions_of};
use std::path::PathBuf;

/// An ELF file with its debug information. A look-up opens a file, so there is one; it is each input's in turn.
pub(super) fn elf(data: &[u8]) {
    let path = PathBuf::from(format!("/dev/shm/mallow-fuzz-{}", std::process::id()));
    if std::fs::write(&path, data).is_err() {
        return;
    }
    let search = SearchPaths { debug_roots: Vec::new(), ..SearchPaths::default() };
    let module = ModuleKey { path: path.to_string_lossy().into_owned(), build_id: Vec::new() };
    let svmas: Vec<u64> = (0x1000..0x1400).step_by(3).collect();
    let found = Symbolizer::new(search.clone()).resolve(&module, &svmas);
    assert!(found.len() == svmas.len() && found.iter().all(|frames| !frames.is_empty()));
    let _ = functions_of(&path, &search, |_, _| true);
    let _ = embedded_suppressions_in(data);
    let _ = std::fs::remove_file(path);
}

/// The answer of a process that looks up names, with a checksum that fits.
pub(super) fn lookup_answer(data: &[u8]) {
    const FLAGS_BYTES: usize = 2;
    const CHECKSUM: std::ops::Range<usize> = FLAGS_BYTES + 8..FLAGS_BYTES + 12;
    let mut bytes = data.to_vec();
    if let Some(body) = bytes.get(CHECKSUM.end..) {
        let checksum = crc32fast::hash(body).to_le_bytes();
        bytes[CHECKSUM].copy_from_slice(&checksum);
    }
    let module = ModuleKey { path: "/bin/app".into(), build_id: Vec::new() };
    let svmas = [0x1000, 0x1001, 0x2fff];
    let Some(answer) = Answer::from_bytes(&bytes, &module, &svmas) else { return };
    assert!(answer.frames.len() == svmas.len() && answer.frames.iter().all(|frames| !frames.is_empty()));
    assert_eq!(Answer::from_bytes(&answer.to_bytes(&svmas), &module, &svmas), Some(answer));
}

/// A file of suppressions.
pub(super) fn suppressions(data: &[u8]) {
    said(Suppression::parse(&String::from_utf8_lossy(data)).err());
}
