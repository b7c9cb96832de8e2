//! Which file lies at a path: its name, size, time, device and number.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Returns which file is at a path: `None` if there is none.
pub(crate) fn identity(path: &Path) -> Option<String> {
    Some(identity_of(path, &fs::metadata(path).ok()?))
}

/// The same of a file that was found there.
pub(crate) fn identity_of(path: &Path, found: &fs::Metadata) -> String {
    format!(
        "{} {} {}.{:09} {}:{}",
        path.display(),
        found.len(),
        found.mtime(),
        found.mtime_nsec(),
        found.dev(),
        found.ino()
    )
}
