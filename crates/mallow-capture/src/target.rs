//! The file that a snapshot goes into: its owner's alone, there only when it is complete, and over no other.

use crate::CaptureError;
use crate::process::Runtime;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Where a snapshot goes.
pub(crate) struct Target {
    path: PathBuf,
}

impl Target {
    /// The file that was named, or the first free `NAME.PID.N` in the folder that was.
    ///
    /// # Errors
    /// When it exists.
    pub(crate) fn new(
        named: Option<&Path>,
        process: (&str, u32),
        runtime: Runtime,
    ) -> Result<Target, CaptureError> {
        let path = match named {
            Some(file) if !file.is_dir() => file.to_owned(),
            folder => free_name(folder.unwrap_or(Path::new("")), process, runtime),
        };
        // A link that leads nowhere is there too.
        if fs::symlink_metadata(&path).is_ok() {
            return Err(CaptureError::Exists(path));
        }
        Ok(Target { path })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The path for who has another working directory.
    pub(crate) fn absolute(&self) -> Result<PathBuf, CaptureError> {
        std::path::absolute(&self.path).map_err(|cause| self.writing(cause))
    }

    /// A file beside it, without its name, which goes away unless it is kept.
    pub(crate) fn begin(&self) -> Result<NamedTempFile, CaptureError> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let begun =
            tempfile::Builder::new().prefix(".mallow-heap-").tempfile_in(folder.unwrap_or(Path::new(".")));
        begun.map_err(|cause| self.writing(cause))
    }

    /// Gives a file that is complete its name.
    pub(crate) fn keep(&self, file: NamedTempFile) -> Result<u64, CaptureError> {
        let bytes = file.as_file().metadata().map_err(|cause| self.writing(cause))?.len();
        file.persist_noclobber(&self.path).map_err(|error| self.writing(error.error))?;
        Ok(bytes)
    }

    /// Takes over a complete file that somebody else has written.
    pub(crate) fn take(&self, written: &Path) -> Result<u64, CaptureError> {
        if fs::hard_link(written, &self.path).is_ok() {
            let only_ours = fs::set_permissions(&self.path, Permissions::from_mode(0o600));
            only_ours.map_err(|cause| self.writing(cause))?;
        } else {
            // Another file system, or another's file.
            let mut file = self.begin()?;
            let copied = File::open(written).and_then(|mut from| io::copy(&mut from, file.as_file_mut()));
            copied.map_err(|cause| self.writing(cause))?;
            self.keep(file)?;
        }
        // It stays where nobody may remove it; the snapshot is there all the same.
        let _ = fs::remove_file(written);
        Ok(fs::metadata(&self.path).map_err(|cause| self.writing(cause))?.len())
    }

    pub(crate) fn writing(&self, cause: io::Error) -> CaptureError {
        match cause.kind() {
            ErrorKind::AlreadyExists => CaptureError::Exists(self.path.clone()),
            _ => CaptureError::Writing { path: self.path.clone(), cause },
        }
    }
}

fn free_name(folder: &Path, (name, pid): (&str, u32), runtime: Runtime) -> PathBuf {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let names = (1_u64..).map(|n| folder.join(format!("{name}.{pid}.{n}.{}", runtime.extension())));
    names.into_iter().find(|path| fs::symlink_metadata(path).is_err()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn names_are_free_and_files_private() {
        let folder = tempfile::tempdir().unwrap();
        for number in 1..3 {
            let target = Target::new(Some(folder.path()), ("puma: 1/2", 7), Runtime::Ruby).unwrap();
            assert_eq!(target.path(), folder.path().join(format!("puma__1_2.7.{number}.json")));
            let mut file = target.begin().unwrap();
            file.write_all(b"{}\n").unwrap();
            assert_eq!(target.keep(file).unwrap(), 3);
            assert_eq!(fs::metadata(target.path()).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn nothing_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let (theirs, ours) = (folder.path().join("theirs"), folder.path().join("ours"));
        fs::write(&theirs, "new").unwrap();
        let target = Target::new(Some(&ours), ("node", 7), Runtime::Node).unwrap();
        fs::write(&ours, "old").unwrap();
        assert!(Target::new(Some(&ours), ("node", 7), Runtime::Node).is_err());
        assert_eq!(
            target.take(&theirs).unwrap_err().to_string(),
            format!("{} exists; a snapshot overwrites no file", ours.display())
        );
        assert_eq!(
            (fs::read(&ours).unwrap(), fs::read(&theirs).unwrap()),
            (b"old".to_vec(), b"new".to_vec())
        );
        fs::remove_file(&ours).unwrap();
        assert_eq!(target.take(&theirs).unwrap(), 3);
        assert!(!theirs.exists());
    }
}
