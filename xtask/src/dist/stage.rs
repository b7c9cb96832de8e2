//! A folder that becomes a package: what is put there has the modes and times that it will have when it is installed, whatever machine
//! packs it.

use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Program,
    Data,
}

impl Kind {
    fn mode(self) -> u32 {
        match self {
            Kind::Program => 0o755,
            Kind::Data => 0o644,
        }
    }
}

/// The folder.
#[derive(Debug)]
pub(super) struct Stage {
    folder: PathBuf,
}

impl Stage {
    /// An empty one, whatever was there.
    pub(super) fn new(folder: PathBuf) -> Result<Stage, String> {
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}.", folder.display()))?;
        }
        let stage = Stage { folder };
        stage.folder_for(Path::new(""))?;
        Ok(stage)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.folder
    }

    /// Puts a file there.
    pub(super) fn put(
        &self,
        place: impl AsRef<Path>,
        bytes: impl AsRef<[u8]>,
        kind: Kind,
    ) -> Result<(), String> {
        let place = place.as_ref();
        self.folder_for(place.parent().unwrap_or(Path::new("")))?;
        let path = self.folder.join(place);
        let set = Permissions::from_mode(kind.mode());
        fs::write(&path, bytes)
            .and_then(|()| fs::set_permissions(&path, set))
            .map_err(|error| format!("{} cannot be written: {error}.", path.display()))
    }

    /// Gives everything one time.
    pub(super) fn set_times(&self, epoch_s: u64) -> Result<(), String> {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(epoch_s);
        let times = FileTimes::new().set_accessed(time).set_modified(time);
        each_in(&self.folder, &mut |path| {
            let set = File::open(path).and_then(|file| file.set_times(times));
            set.map_err(|error| format!("{}: {error}.", path.display()))
        })
    }

    /// Makes a folder and those above it, each open to everybody for reading.
    fn folder_for(&self, place: &Path) -> Result<(), String> {
        let mut path = self.folder.clone();
        let parts = place.components().map(|part| part.as_os_str());
        for part in std::iter::once(Path::new("").as_os_str()).chain(parts) {
            path.push(part);
            let made = fs::create_dir_all(&path)
                .and_then(|()| fs::set_permissions(&path, Permissions::from_mode(0o755)));
            made.map_err(|error| format!("{} cannot be made: {error}.", path.display()))?;
        }
        Ok(())
    }
}

/// Calls `each` with everything below a folder, what is in a folder before the folder.
fn each_in(folder: &Path, each: &mut dyn FnMut(&Path) -> Result<(), String>) -> Result<(), String> {
    let because = |error: std::io::Error| format!("{}: {error}.", folder.display());
    for entry in fs::read_dir(folder).map_err(because)? {
        let path = entry.map_err(because)?.path();
        if path.is_dir() { each_in(&path, each)? } else { each(&path)? }
    }
    each(folder)
}

/// A file's bytes.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{} cannot be read: {error}.", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_their_modes_and_one_time() {
        let folder = tempfile::tempdir().unwrap();
        let stage = Stage::new(folder.path().join("stage")).unwrap();
        stage.put("bin/a", "x", Kind::Program).unwrap();
        stage.put("share/doc/b", "y", Kind::Data).unwrap();
        stage.set_times(1_000_000_000).unwrap();
        for (place, mode) in [("bin", 0o755), ("bin/a", 0o755), ("share/doc", 0o755), ("share/doc/b", 0o644)]
        {
            let meta = fs::metadata(stage.path().join(place)).unwrap();
            assert_eq!(meta.permissions().mode() & 0o7777, mode, "{place}");
            let since = meta.modified().unwrap().duration_since(SystemTime::UNIX_EPOCH).unwrap();
            assert_eq!(since.as_secs(), 1_000_000_000, "{place}");
        }
    }
}
