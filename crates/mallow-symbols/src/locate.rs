//! Where the files of a module may lie.
//!
//! This file only makes lists of paths, in the order in which they should be tried; it opens nothing, so that the
//! order can be tested without a file system. `binary.rs` opens and checks.
//!
//! The places are those of the GDB manual, "Debugging Information in Separate Files": by build id, and by the name in
//! `.gnu_debuglink`.

use mallow_base::hex;
use std::ffi::OsStr;
use std::fmt;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Where to look for separate debug files, and for the modules themselves.
#[derive(Clone, Debug)]
pub struct SearchPaths {
    /// Folders laid out like `/usr/lib/debug`: `.build-id/xx/yyyy.debug`, and the tree of debug files by path.
    pub debug_roots: Vec<PathBuf>,
    /// The root under which the modules' paths are valid, for programs that ran in a container or on another machine.
    /// Debug roots are tried under it first, then as they are.
    pub sysroot: Option<PathBuf>,
    /// Asked for a module's own file that is not at its path, or is another build there.
    pub other_roots: Option<OtherRoots>,
    /// Asked last, by build id, for a debug file that is in none of these places.
    pub server: Option<DebugServer>,
    /// Is told of each file that was tried.
    pub on_attempt: Option<OnAttempt>,
}

/// Somebody who knows roots of processes that see other files than we do, and opens what lies at a path below each of them.
#[derive(Clone, Copy)]
pub struct OtherRoots(pub fn(&Path) -> Vec<OwnedFd>);

impl fmt::Debug for OtherRoots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OtherRoots")
    }
}

/// Somebody who wants to know which files were tried, and why one was not taken, or what it is taken for.
#[derive(Clone, Copy)]
pub struct OnAttempt(pub fn(&Path, &str));

impl fmt::Debug for OnAttempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnAttempt")
    }
}

/// Somebody who has debug files by build id, and puts them where they can be read.
#[derive(Clone, Copy)]
pub struct DebugServer(pub fn(&[u8]) -> Option<PathBuf>);

impl fmt::Debug for DebugServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DebugServer")
    }
}

impl Default for SearchPaths {
    fn default() -> Self {
        Self {
            debug_roots: vec![PathBuf::from("/usr/lib/debug")],
            sysroot: None,
            other_roots: None,
            server: None,
            on_attempt: None,
        }
    }
}

impl SearchPaths {
    /// `path` as seen from here: under the sysroot, if there is one.
    pub(crate) fn rooted(&self, path: &Path) -> PathBuf {
        match &self.sysroot {
            Some(root) => under(root, path),
            None => path.to_owned(),
        }
    }

    fn roots(&self) -> Vec<PathBuf> {
        let rooted = self.debug_roots.iter().filter_map(|root| Some(under(self.sysroot.as_ref()?, root)));
        rooted.chain(self.debug_roots.iter().cloned()).collect()
    }

    /// `ROOT/.build-id/xx/yyyy.debug`; none for ids too short to be split.
    pub(crate) fn by_build_id(&self, build_id: &[u8]) -> Vec<PathBuf> {
        if build_id.len() < 2 {
            return Vec::new();
        }
        let name = format!(".build-id/{}/{}.debug", hex(&build_id[..1]), hex(&build_id[1..]));
        self.roots().iter().map(|root| root.join(&name)).collect()
    }

    /// Places of the file that `.gnu_debuglink` of a binary names. `folders` are the folders of the binary, as
    /// mapped and with symbolic links resolved (`/lib` is a link on many systems, and debug packages use one of the
    /// two names).
    pub(crate) fn by_debuglink(&self, folders: &[PathBuf], link: &[u8]) -> Vec<PathBuf> {
        let link = Path::new(OsStr::from_bytes(link));
        // A link is a plain name; one with folders in it is not followed out of the places below.
        let Some(name) = link.file_name() else { return Vec::new() };
        let mut paths = Vec::new();
        for folder in folders {
            paths.push(folder.join(name));
            paths.push(folder.join(".debug").join(name));
        }
        for root in self.roots() {
            for folder in folders {
                let inside = self.sysroot.as_ref().and_then(|sysroot| folder.strip_prefix(sysroot).ok());
                paths.push(under(&root, inside.unwrap_or(folder)).join(name));
            }
        }
        paths
    }

    /// Places of the supplementary file that `.gnu_debugaltlink` of a debug file names (made by dwz). `folders` are
    /// those of the debug file, as found and with symbolic links resolved.
    pub(crate) fn by_altlink(&self, folders: &[PathBuf], link: &[u8], build_id: &[u8]) -> Vec<PathBuf> {
        let link = Path::new(OsStr::from_bytes(link));
        let mut paths = Vec::new();
        if link.is_absolute() {
            if self.sysroot.is_some() {
                paths.push(self.rooted(link));
            }
            paths.push(link.to_owned());
        } else {
            paths.extend(folders.iter().map(|folder| folder.join(link)));
        }
        paths.extend(self.by_build_id(build_id));
        paths
    }
}

/// Joins an absolute path to a root, as chroot would see it.
fn under(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}

#[cfg(test)]
mod tests {
    use super::SearchPaths;
    use std::path::{Path, PathBuf};

    fn paths(texts: &[&str]) -> Vec<PathBuf> {
        texts.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn build_ids_are_split_after_the_first_byte() {
        let search = SearchPaths::default();
        let expected = paths(&["/usr/lib/debug/.build-id/0a/bcff.debug"]);
        assert_eq!(search.by_build_id(&[0x0a, 0xbc, 0xff]), expected);
        assert_eq!(search.by_build_id(&[0x0a]), paths(&[]));
    }

    #[test]
    fn a_debuglink_is_sought_beside_the_binary_first() {
        let found = SearchPaths::default().by_debuglink(&paths(&["/opt/x"]), b"app.debug");
        let expected = ["/opt/x/app.debug", "/opt/x/.debug/app.debug", "/usr/lib/debug/opt/x/app.debug"];
        assert_eq!(found, paths(&expected));
    }

    #[test]
    fn a_debuglink_does_not_climb_out() {
        let found = SearchPaths::default().by_debuglink(&paths(&["/opt/x"]), b"../../etc/passwd");
        assert_eq!(found[0], Path::new("/opt/x/passwd"));
        assert_eq!(SearchPaths::default().by_debuglink(&paths(&["/opt/x"]), b".."), paths(&[]));
    }

    #[test]
    fn a_sysroot_comes_before_every_root() {
        let search = SearchPaths { sysroot: Some("/mnt".into()), ..SearchPaths::default() };
        assert_eq!(search.rooted(Path::new("/bin/app")), Path::new("/mnt/bin/app"));
        let expected = ["/mnt/usr/lib/debug/.build-id/01/02.debug", "/usr/lib/debug/.build-id/01/02.debug"];
        assert_eq!(search.by_build_id(&[1, 2]), paths(&expected));
        let found = search.by_debuglink(&paths(&["/mnt/bin"]), b"app.debug");
        let expected = [
            "/mnt/bin/app.debug",
            "/mnt/bin/.debug/app.debug",
            "/mnt/usr/lib/debug/bin/app.debug",
            "/usr/lib/debug/bin/app.debug",
        ];
        assert_eq!(found, paths(&expected));
    }

    #[test]
    fn an_altlink_is_relative_to_the_debug_file() {
        let found = SearchPaths::default().by_altlink(&paths(&["/d"]), b"../.dwz/all", &[1, 2]);
        let expected = ["/d/../.dwz/all", "/usr/lib/debug/.build-id/01/02.debug"];
        assert_eq!(found, paths(&expected));
    }
}
