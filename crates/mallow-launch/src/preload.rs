//! Putting the preload library where the loader can find it.
//!
//! The library travels inside the mallow binary. It is written once per version and user to a directory that
//! only that user can write and that everybody can read: a program that gives up its rights still has to load
//! the library into its children.

use crate::{Content, LaunchError, open_files};
use rustix::io::Errno;
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Names another recorder to use, such as one that checks itself. For developers of mallow.
const LIBRARY_VARIABLE: &str = "MALLOW_PRELOAD";

/// How the recorder's file name begins: so its frames are known on a stack.
pub const LIBRARY_NAME_START: &str = "libmallow_preload";

/// Unpacks the library unless it is there, and returns its path.
pub(crate) fn unpack_library(name_start: &str, library: Content<'_>) -> Result<PathBuf, LaunchError> {
    match std::env::var_os(LIBRARY_VARIABLE).filter(|_| name_start == LIBRARY_NAME_START) {
        Some(path) => Ok(path.into()),
        None => unpack(name_start, ".so", library),
    }
}

/// Unpacks something that programs load unless it is there, and returns its path, which has no blanks: only this user can write
/// it, and everybody can read it.
///
/// # Errors
/// When there is no folder for it.
pub fn unpack(name_start: &str, extension: &str, content: Content<'_>) -> Result<PathBuf, LaunchError> {
    const TRIES_MAX: u32 = 20;
    const PAUSE: Duration = Duration::from_millis(10);
    for _ in 1..TRIES_MAX {
        match unpack_somewhere(name_start, extension, content) {
            // Other threads of mallow's may have files open for a moment.
            Err(LaunchError::TooFewFiles { .. }) => std::thread::sleep(PAUSE),
            outcome => return outcome,
        }
    }
    unpack_somewhere(name_start, extension, content)
}

fn unpack_somewhere(name_start: &str, extension: &str, content: Content<'_>) -> Result<PathBuf, LaunchError> {
    let mut tried = Vec::new();
    let mut has_too_few_files = false;
    for directory in places() {
        // A relative name would be looked up from wherever a program of the command stands.
        if !directory.is_absolute() {
            continue;
        }
        if ends_names_in_preload(&directory) {
            tried.push(format!("'{}' (a blank or colon ends a name in LD_PRELOAD)", directory.display()));
            continue;
        }
        match unpack_into(&directory, [name_start, extension], content) {
            Ok(path) => return Ok(path),
            Err(cause) => {
                has_too_few_files = cause.raw_os_error() == Some(Errno::MFILE.raw_os_error());
                tried.push(format!("'{}' ({cause})", directory.display()));
            }
        }
    }
    match has_too_few_files {
        true => Err(LaunchError::TooFewFiles { most: open_files::most() }),
        false => Err(LaunchError::CannotUnpack { places: tried.join(" or ") }),
    }
}

fn places() -> Vec<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let mut places = vec![std::env::temp_dir().join(format!("mallow-{user}"))];
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    places.extend(cache.or(home).map(|cache| cache.join("mallow")));
    // For when neither can be used: a name with a blank in it, no home.
    for place in ["/tmp", "/var/tmp", "/dev/shm"] {
        let place = Path::new(place).join(format!("mallow-{user}"));
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

fn ends_names_in_preload(directory: &Path) -> bool {
    directory.as_os_str().as_bytes().iter().any(|byte| b" :\t\n".contains(byte))
}

/// A folder that nobody but this user can write or swap, and that everybody can look into; none when there is no place for one.
pub fn own_folder() -> Option<PathBuf> {
    places().into_iter().filter(|place| place.is_absolute()).find(|place| made(place).is_ok())
}

/// Makes a folder, if it is not there, that nobody but this user can write or swap.
fn made(directory: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o755).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    mallow_files::check_ours(directory)
}

fn unpack_into(
    directory: &Path,
    [name_start, extension]: [&str; 2],
    content: Content<'_>,
) -> io::Result<PathBuf> {
    made(directory)?;
    check_place(directory)?;
    // The name carries the content's checksum, so versions live side by side and running programs keep
    // theirs.
    let path = directory.join(format!("{name_start}-{:08x}{extension}", content.checksum()));
    if content.is_in(&path) {
        return Ok(path);
    }
    let fresh = directory.join(format!(".preload-{}", std::process::id()));
    let _ = fs::remove_file(&fresh);
    let mut file = mallow_files::create_new(&fresh)?;
    file.write_all(&content.unpacked()?)?;
    file.set_permissions(fs::Permissions::from_mode(0o755))?;
    fs::rename(&fresh, &path)?;
    Ok(path)
}

/// Refuses a directory that the loader cannot map code from.
fn check_place(directory: &Path) -> io::Result<()> {
    let flags = rustix::fs::statvfs(directory)?.f_flag;
    if flags.contains(rustix::fs::StatVfsMountFlags::NOEXEC) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is mounted noexec"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: [&str; 2] = [LIBRARY_NAME_START, ".so"];

    #[test]
    fn unpacking_twice_gives_one_file_and_mends_a_damaged_one() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("mallow");
        let path = unpack_into(&place, NAME, Content::Plain(b"library")).unwrap();
        assert_eq!(unpack_into(&place, NAME, Content::Plain(b"library")).unwrap(), path);
        fs::write(&path, b"damaged").unwrap();
        assert_eq!(unpack_into(&place, NAME, Content::Plain(b"library")).unwrap(), path);
        assert_eq!(fs::read(&path).unwrap(), b"library");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
    }

    #[test]
    fn names_that_the_loader_would_cut_are_not_used() {
        for (name, ends) in [("/tmp/a b", true), ("/tmp/a:b", true), ("/tmp/a\tb", true), ("/tmp/a-b", false)]
        {
            assert_eq!(ends_names_in_preload(Path::new(name)), ends, "{name}");
        }
    }

    #[test]
    fn a_directory_that_others_can_write_or_swap_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("mallow");
        unpack_into(&place, NAME, Content::Plain(b"x")).unwrap();
        let refused = |folder: &Path| {
            fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
            let said = unpack_into(&place, NAME, Content::Plain(b"x")).unwrap_err().to_string();
            fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
            said
        };
        assert!(refused(&place).ends_with("mallow can be written by others"));
        assert!(
            refused(directory.path()).ends_with("can be written by others, who can replace what is in it")
        );
    }
}
