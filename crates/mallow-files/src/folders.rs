//! Folders.

use std::fs::{self, DirBuilder, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Makes a folder that only its owner can look into, with those above it. One that is there has to be ours, is no link, and becomes private; if others
/// could write it, what lies in it may be theirs.
///
/// # Errors
/// `PermissionDenied`, with the reason, when it is somebody else's or was open to others; others as the system says them.
pub fn private_folder(path: &Path) -> io::Result<()> {
    if let Some(above) = path.parent().filter(|above| !above.as_os_str().is_empty()) {
        DirBuilder::new().recursive(true).mode(0o700).create(above)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => return made,
    }
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() || found.uid() != user() {
        return Err(denied(path, "belongs to another user, or is no folder"));
    }
    if found.mode() & 0o022 != 0 {
        return Err(denied(path, "can be written by others"));
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// Returns whether nobody but us and root can change this folder: it is ours, and no group and no others can write it.
///
/// # Errors
/// `PermissionDenied`, with the reason, when somebody can; others as the system says them.
pub fn check_ours(path: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(path)?;
    if !found.is_dir() || found.uid() != user() {
        return Err(denied(path, "belongs to another user, or is no folder"));
    }
    if found.mode() & 0o022 != 0 {
        return Err(denied(path, "can be written by others"));
    }
    check_parents(path)
}

/// Returns whether nobody but us and root can put another thing in the place of this one: every folder above it belongs to us or root, and others can write
/// it only where they cannot rename what is not theirs (the sticky bit of `/tmp`). Links are followed, and what they lead through is looked at.
///
/// # Errors
/// `PermissionDenied`, with the folder and the reason, when somebody can; others as the system says them.
pub fn check_parents(path: &Path) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    let mut looked_at: Vec<PathBuf> = above(&path).map(Path::to_owned).collect();
    // The way that links take.
    let target = fs::canonicalize(path.parent().unwrap_or(Path::new("/")))?;
    looked_at.extend(target.ancestors().map(Path::to_owned));
    // Within a user namespace root of the system is nobody, and so is who owns `/`.
    let trusted = [0, user(), fs::metadata("/")?.uid()];
    looked_at.iter().try_for_each(|folder| judged(folder, &fs::metadata(folder)?, &trusted))
}

fn above(path: &Path) -> impl Iterator<Item = &Path> {
    path.ancestors().skip(1)
}

fn judged(folder: &Path, found: &Metadata, trusted: &[u32]) -> io::Result<()> {
    const STICKY: u32 = 0o1000;
    if !trusted.contains(&found.uid()) {
        return Err(denied(folder, "belongs to another user"));
    }
    if found.mode() & 0o022 != 0 && found.mode() & STICKY == 0 {
        return Err(denied(folder, "can be written by others, who can replace what is in it"));
    }
    Ok(())
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn denied(path: &Path, why: &str) -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, format!("{} {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_private_folder_is_private_whatever_was_there() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("a/b");
        private_folder(&folder).unwrap();
        set(&folder, 0o755);
        private_folder(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().mode() & 0o777, 0o700);
        // What others could write may hold what they have put there.
        set(&folder, 0o777);
        assert_eq!(private_folder(&folder).unwrap_err().kind(), ErrorKind::PermissionDenied);
        let link = parent.path().join("link");
        symlink(&folder, &link).unwrap();
        let file = parent.path().join("file");
        fs::write(&file, "").unwrap();
        for path in [&link, &file] {
            assert_eq!(private_folder(path).unwrap_err().kind(), ErrorKind::PermissionDenied, "{path:?}");
        }
    }

    #[test]
    fn who_can_write_above_can_swap_what_is_below() {
        let parent = tempfile::tempdir().unwrap();
        let open = parent.path().join("open");
        let folder = open.join("ours");
        fs::create_dir_all(&folder).unwrap();
        set(&folder, 0o755);
        let refused = |mode: u32| {
            set(&open, mode);
            check_ours(&folder).err().map(|error| error.to_string())
        };
        assert_eq!(refused(0o755), None);
        assert_eq!(refused(0o1777), None, "as /tmp is");
        for mode in [0o777, 0o775, 0o757] {
            let said = refused(mode).unwrap();
            assert!(said.contains("open can be written by others, who can replace"), "{said}");
        }
        // A link that leads through such a folder is no way around.
        let link = parent.path().join("link");
        symlink(&open, &link).unwrap();
        assert!(check_parents(&link.join("ours")).is_err());
        set(&open, 0o755);
        set(&folder, 0o777);
        assert!(check_ours(&folder).unwrap_err().to_string().ends_with("can be written by others"));
        assert!(check_parents(&link.join("ours")).is_ok());
    }

    #[test]
    fn a_folder_below_somebody_elses_is_not_trusted() {
        let parent = tempfile::tempdir().unwrap();
        let theirs = parent.path().join("theirs");
        let folder = theirs.join("mallow");
        fs::create_dir_all(&folder).unwrap();
        set(&folder, 0o755);
        if !rustix::process::geteuid().is_root() {
            // Who is not root has no folder of another's that is his own; root's are trusted.
            assert!(check_ours(Path::new("/")).is_err());
            return;
        }
        std::os::unix::fs::chown(&theirs, Some(65534), None).unwrap();
        assert!(check_ours(&folder).unwrap_err().to_string().ends_with("theirs belongs to another user"));
        assert!(check_ours(&theirs).is_err() && private_folder(&theirs).is_err());
    }
}
