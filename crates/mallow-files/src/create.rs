//! Files.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// What only its owner can read and write.
const OWNERS: u32 = 0o600;
const NOT_THROUGH_LINKS: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

/// Makes a file where nothing is.
///
/// # Errors
/// `AlreadyExists` when something is there, a link to nothing too; others as the system says them.
pub fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(OWNERS).open(path)
}

/// Opens a file to be written from its beginning. A file that is there, or a link to one, is replaced by a new one of ours; what is no file, such as a
/// terminal, is written to as it is.
///
/// # Errors
/// `InvalidInput` for a FIFO or a folder, whose opening would wait or fail; others as the system says them.
pub fn overwrite(path: &Path) -> io::Result<File> {
    match create_new(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        made => return made,
    }
    match fs::metadata(path) {
        Ok(found) if found.is_file() => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Ok(found) if std::os::unix::fs::FileTypeExt::is_char_device(&found.file_type()) => {
            return OpenOptions::new().write(true).open(path);
        }
        Ok(_) => return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file")),
        Err(error) => return Err(error),
    }
    // Under a name that nobody can guess until it takes the other's place.
    let (file, fresh) = beside(path)?.into_parts();
    fresh.persist(path)?;
    Ok(file)
}

/// Writes a whole file at once: it has all of its content or is not there. What was there is replaced as [`overwrite`] does it.
///
/// # Errors
/// As [`overwrite`], and when the content cannot be written.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    replace_with(path, |file| file.write_all(content))
}

/// As [`replace`], of what `write` writes.
///
/// # Errors
/// As [`replace`], and those of `write`.
pub fn replace_with<T, E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut File) -> Result<T, E>,
) -> Result<T, E> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return write(&mut overwrite(path)?);
    }
    let mut file = beside(path)?;
    let written = write(file.as_file_mut())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(written)
}

/// Writes a whole file at once, as [`replace`] does it, for everybody to read: what people commit to their project.
///
/// # Errors
/// As [`replace`].
pub fn publish(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = beside(path)?;
    file.write_all(content)?;
    // As any tool's file, or as somebody has made it.
    let mode =
        fs::symlink_metadata(path).ok().filter(Metadata::is_file).map_or(0o644, |found| found.mode() & 0o777);
    file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

/// Opens a file that grows at its end, such as a summary that several write to: one of ours, or one that is there.
///
/// # Errors
/// When it is a link, or as the system says them.
pub fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(OWNERS).custom_flags(NOT_THROUGH_LINKS).open(path)
}

/// Opens a file that is locked and never written.
///
/// # Errors
/// When it is a link, or as the system says them.
pub fn lock_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(OWNERS).custom_flags(NOT_THROUGH_LINKS).open(path)
}

/// A file of ours in the same folder.
fn beside(path: &Path) -> io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tempfile::Builder::new()
        .prefix(".mallow-")
        .permissions(fs::Permissions::from_mode(OWNERS))
        .tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    /// A folder with a file of somebody's that everybody can read, and a link to it.
    fn planted() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let (secret, link) = (folder.path().join("secret"), folder.path().join("link"));
        fs::write(&secret, "theirs").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o666)).unwrap();
        symlink(&secret, &link).unwrap();
        (folder, secret, link)
    }

    fn text(path: &Path) -> String {
        fs::read_to_string(path).unwrap()
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn a_new_file_is_never_behind_a_link() {
        let (folder, secret, link) = planted();
        let nowhere = folder.path().join("nowhere");
        symlink("gone", &nowhere).unwrap();
        for path in [&secret, &link, &nowhere] {
            assert_eq!(create_new(path).unwrap_err().kind(), io::ErrorKind::AlreadyExists, "{path:?}");
        }
        drop(create_new(&folder.path().join("new")).unwrap());
        assert_eq!(mode(&folder.path().join("new")), 0o600);
    }

    #[test]
    fn what_is_there_is_replaced_and_not_written_into() {
        let (folder, secret, link) = planted();
        overwrite(&link).unwrap().write_all(b"ours").unwrap();
        assert_eq!((text(&secret).as_str(), text(&link).as_str()), ("theirs", "ours"));
        assert!(fs::symlink_metadata(&link).unwrap().is_file());
        assert_eq!(mode(&link), 0o600);
        // Who has it open goes on with the old one, and its mode is not ours.
        let mut open = File::open(&secret).unwrap();
        replace(&secret, b"ours too").unwrap();
        assert_eq!(io::read_to_string(&mut open).unwrap(), "theirs");
        assert_eq!((text(&secret).as_str(), mode(&secret)), ("ours too", 0o600));
        symlink("gone", folder.path().join("nowhere")).unwrap();
        replace(&folder.path().join("nowhere"), b"x").unwrap();
        assert!(!folder.path().join("gone").exists());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing is left beside");
    }

    #[test]
    fn what_is_no_file_stays_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        overwrite(Path::new("/dev/null")).unwrap().write_all(b"x").unwrap();
        replace(Path::new("/dev/null"), b"x").unwrap();
        let device = fs::metadata("/dev/null").unwrap();
        assert!(std::os::unix::fs::FileTypeExt::is_char_device(&device.file_type()));
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        for path in [&fifo, folder.path()] {
            assert_eq!(overwrite(path).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{path:?}");
            assert_eq!(replace(path, b"x").unwrap_err().kind(), io::ErrorKind::InvalidInput, "{path:?}");
        }
    }

    #[test]
    fn what_is_published_can_be_read_by_all_and_is_written_through_no_link() {
        let (folder, secret, link) = planted();
        publish(&link, b"1").unwrap();
        assert_eq!((text(&secret).as_str(), text(&link).as_str(), mode(&link)), ("theirs", "1", 0o644));
        fs::set_permissions(&link, fs::Permissions::from_mode(0o640)).unwrap();
        publish(&link, b"2").unwrap();
        assert_eq!((text(&link).as_str(), mode(&link)), ("2", 0o640));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn locks_and_logs_are_opened_as_they_are_and_not_through_links() {
        let (folder, secret, link) = planted();
        assert!(lock_file(&link).is_err() && append(&link).is_err());
        drop(lock_file(&secret).unwrap());
        assert_eq!(text(&secret), "theirs", "a lock truncates nothing");
        let log = folder.path().join("log");
        for line in ["a", "b"] {
            append(&log).unwrap().write_all(line.as_bytes()).unwrap();
        }
        assert_eq!((text(&log).as_str(), mode(&log)), ("ab", 0o600));
    }
}
