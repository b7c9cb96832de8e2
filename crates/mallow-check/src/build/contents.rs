//! What is in files, as one number each. Dates say nothing: a checkout changes all of them and no file.

use std::collections::HashMap;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hasher as _};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The numbers of files that do not change during a build, each worked out once.
#[derive(Debug, Default)]
pub(super) struct Contents {
    known: Mutex<HashMap<PathBuf, Option<u64>>>,
}

impl Contents {
    /// Returns the hash of a file that is not being written; `None` if it cannot be read.
    pub(super) fn of(&self, path: &Path) -> Option<u64> {
        if let Ok(known) = self.known.lock()
            && let Some(number) = known.get(path)
        {
            return *number;
        }
        let number = of_file(path);
        if let Ok(mut known) = self.known.lock() {
            known.insert(path.to_owned(), number);
        }
        number
    }

    /// Forgets what was known of a file that is about to be written.
    pub(super) fn forget(&self, path: &Path) {
        if let Ok(mut known) = self.known.lock() {
            known.remove(path);
        }
    }
}

fn of_file(path: &Path) -> Option<u64> {
    // A pipe or a device would be waited for.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut file = File::open(path).ok()?;
    let mut hasher = DefaultHasher::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(hasher.finish()),
            length => hasher.write(&buffer[..length]),
        }
    }
}
