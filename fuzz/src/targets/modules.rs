//! What files of programs say, and suppressions.

use super::said::said;
use mallow_profile::Suppression;
use mallow_symbols::{ModuleKey, SearchPaths, Symbolizer, embedded_suppressions_in, functions_of};
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

/// A file of suppressions.
pub(super) fn suppressions(data: &[u8]) {
    said(Suppression::parse(&String::from_utf8_lossy(data)).err());
}
