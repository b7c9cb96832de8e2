//! Files that were looked at for allocators, each once, by whatever recording of this process: a suite of tests starts the same programs hundreds of times.

use mallow_launch::LIBRARY_NAME_START;
use mallow_patches::{Examined, Image};
use rustc_hash::FxHashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// An object that is mapped into a process, or will be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// Its file, as we see it.
    pub(crate) path: PathBuf,
    /// Its role in the process.
    pub(crate) role: Role,
}

/// The role of an object in its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// The program itself.
    Executable,
    /// A library of it.
    Library,
}

/// By device, number, time of change and length.
type Key = (u64, u64, i64, u64, Role);

/// What was found in an object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    /// The allocator whose names the functions of an executable have.
    pub(crate) named: Option<&'static str>,
    /// What is to be patched.
    pub(crate) image: Option<Arc<Image>>,
}

static LOOKED_AT: Mutex<Option<FxHashMap<Key, Found>>> = Mutex::new(None);

/// The C library and what belongs to compilers, which have no other allocator than the one that is seen anyway.
const KNOWN_WITHOUT: [&str; 10] = [
    "libc.so",
    "libc-2.",
    "ld-linux",
    "ld-musl",
    "libm.so",
    "libpthread.so",
    "libdl.so",
    "librt.so",
    "libgcc_s.so",
    "libstdc++.so",
];

/// Returns what is to be patched in an object; `None` if there is nothing.
pub(crate) fn image_of(object: &Object) -> Option<Arc<Image>> {
    let name = object.path.file_name()?.to_string_lossy();
    let is_without = || KNOWN_WITHOUT.iter().any(|start| name.starts_with(start));
    if name.starts_with(LIBRARY_NAME_START) || (object.role == Role::Library && is_without()) {
        return None;
    }
    found_in(object).image
}

/// Returns what is in an object.
pub(crate) fn found_in(object: &Object) -> Found {
    /// With more of them all are forgotten.
    const KNOWN_MAX: usize = 100_000;
    let Some(about) = std::fs::metadata(&object.path).ok().filter(Metadata::is_file) else {
        return Found::default();
    };
    if let Some(found) = known(&about, object.role) {
        return found;
    }
    let Examined { named, image } = examine(&object.path, object.role);
    let found = Found { named, image: image.map(Arc::new) };
    let mut all = LOOKED_AT.lock().unwrap_or_else(PoisonError::into_inner);
    let all = all.get_or_insert_default();
    if all.len() > KNOWN_MAX {
        all.clear();
    }
    all.insert(key(&about, object.role), found.clone());
    found
}

/// Returns what is in an object that was looked at before.
pub(crate) fn known(about: &Metadata, role: Role) -> Option<Found> {
    LOOKED_AT.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.get(&key(about, role)).cloned()
}

fn key(about: &Metadata, role: Role) -> Key {
    let changed = about.mtime_nsec() ^ about.mtime() << 30;
    (about.dev(), about.ino(), changed, about.len(), role)
}

/// A file may contain anything: a panic of the parser must not end the recording.
fn examine(path: &Path, role: Role) -> Examined {
    let examine = || match role {
        Role::Executable => Image::examine(path),
        Role::Library => Examined { named: None, image: Image::examine_library(path) },
    };
    std::panic::catch_unwind(examine).unwrap_or_default()
}
