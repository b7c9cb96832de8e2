//! Files that were looked at for allocators, each once, by whatever recording of this process: a suite of tests starts the same programs hundreds of times.

use mallow_launch::LIBRARY_NAME_START;
use mallow_patches::Image;
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

static LOOKED_AT: Mutex<Option<FxHashMap<Key, Option<Arc<Image>>>>> = Mutex::new(None);

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
    /// With more of them all are forgotten.
    const KNOWN_MAX: usize = 100_000;
    let name = object.path.file_name()?.to_string_lossy();
    let is_without = || KNOWN_WITHOUT.iter().any(|start| name.starts_with(start));
    if name.starts_with(LIBRARY_NAME_START) || (object.role == Role::Library && is_without()) {
        return None;
    }
    let about = std::fs::metadata(&object.path).ok().filter(Metadata::is_file)?;
    let changed = about.mtime_nsec() ^ about.mtime() << 30;
    let key = (about.dev(), about.ino(), changed, about.len(), object.role);
    let known = |of: &mut FxHashMap<Key, Option<Arc<Image>>>| of.get(&key).cloned();
    let locked = || LOOKED_AT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(image) = locked().as_mut().and_then(known) {
        return image;
    }
    let image = examine(&object.path, object.role).map(Arc::new);
    let mut all = locked();
    let all = all.get_or_insert_default();
    if all.len() > KNOWN_MAX {
        all.clear();
    }
    all.insert(key, image.clone());
    image
}

/// A file may contain anything: a panic of the parser must not end the recording.
fn examine(path: &Path, role: Role) -> Option<Image> {
    let examine = || match role {
        Role::Executable => Image::examine(path),
        Role::Library => Image::examine_library(path),
    };
    std::panic::catch_unwind(examine).ok().flatten()
}
