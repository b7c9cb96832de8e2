//! The working folder of a suite: what is built, what programs print, what is recorded.
//!
//! It lies outside the source tree, which may be read-only, and is never deleted: what is in it is built once, and
//! people look into it after a failure. Its name is made of the suite's path, so that it is the same the next time.
//! While a check is at work in it, a second one waits.

use crate::shims;
use rustix::fs::{FlockOperation, StatVfsMountFlags, flock};
use std::env;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

#[cfg(test)]
#[path = "workdir_tests.rs"]
mod tests;

/// The folders that this process holds. Waiting for one of them would never end.
static HELD: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The file of a test's folder with the names of its results.
const REGIONS: &str = "regions";

/// A working folder, held until it is dropped.
#[derive(Debug)]
pub struct Workdir {
    root: PathBuf,
    /// Unlocked when it is closed, even if this process is killed.
    _lock: File,
}

/// Why there is no working folder.
#[derive(Debug, thiserror::Error)]
pub enum WorkdirError {
    /// No place can be written to.
    #[error(
        "there is no place for a working folder: {}; set XDG_CACHE_HOME or TMPDIR to a folder that can be written",
        attempts_text(.tried)
    )]
    NoPlace {
        /// What was tried, and what the system said.
        tried: Vec<(PathBuf, io::Error)>,
    },
    /// This check has it already.
    #[error("{} is the folder of this very check: a suite cannot be held against itself", .suite_folder.display())]
    Own {
        /// The suite's folder.
        suite_folder: PathBuf,
    },
    /// The folder is there, and something in it cannot be written.
    #[error("cannot write into the working folder {}: {error}", .root.display())]
    Unwritable {
        /// The folder.
        root: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

fn attempts_text(tried: &[(PathBuf, io::Error)]) -> String {
    tried.iter().map(|(path, error)| format!("{}: {error}", path.display())).collect::<Vec<_>>().join(", ")
}

impl Workdir {
    /// Makes or finds the folder for the suite in `suite_folder`, and waits until nobody else works in it.
    pub fn open(suite_folder: &Path) -> Result<Workdir, WorkdirError> {
        Workdir::open_telling(suite_folder, |_| {})
    }

    /// The same, with a sentence for who is watching, told before the wait.
    pub fn open_telling(suite_folder: &Path, tell: impl FnOnce(&str)) -> Result<Workdir, WorkdirError> {
        Workdir::open_in(&Parents::of_environment(), suite_folder, tell)
    }

    /// One below `parent` and nowhere else.
    #[cfg(test)]
    pub(crate) fn open_below(parent: &Path, suite_folder: &Path) -> Workdir {
        let parents = Parents { own: vec![parent.to_owned()], temporary: parent.to_owned() };
        Workdir::open_in(&parents, suite_folder, |_| {}).expect("a working folder")
    }

    fn open_in(
        parents: &Parents,
        suite_folder: &Path,
        tell: impl FnOnce(&str),
    ) -> Result<Workdir, WorkdirError> {
        let root = parents.make_folder(&folder_name(suite_folder))?;
        if HELD.lock().is_ok_and(|held| held.contains(&root)) {
            return Err(WorkdirError::Own { suite_folder: suite_folder.to_owned() });
        }
        let unwritable = |error| WorkdirError::Unwritable { root: root.clone(), error };
        let lock = locked(&root, tell).map_err(unwritable)?;
        if let Ok(mut held) = HELD.lock() {
            held.push(root.clone());
        }
        let workdir = Workdir { root: root.clone(), _lock: lock };
        shims::write_into(&root).map_err(unwritable)?;
        for folder in ["bin", "objects", "tests"] {
            fs::create_dir_all(root.join(folder)).map_err(unwritable)?;
        }
        Ok(workdir)
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where `mallow.h` is.
    pub fn include(&self) -> PathBuf {
        self.root.join("include")
    }

    /// The built program of a test.
    pub fn program(&self, test: &str) -> PathBuf {
        self.root.join("bin").join(test)
    }

    /// The folder for what a test prints and what is recorded of it. It is made, and not emptied.
    pub fn test_folder(&self, test: &str) -> io::Result<PathBuf> {
        let folder = self.root.join("tests").join(test);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// Keeps what a test's results were called, for who asks what there is.
    pub(crate) fn note_regions(&self, test: &str, names: &[&str]) -> io::Result<()> {
        mallow_files::replace(&self.test_folder(test)?.join(REGIONS), names.join("\n").as_bytes())
    }

    /// What a test's results were called when it was run last; nothing when it was not. Waits for nobody.
    pub fn noted_regions(suite_folder: &Path, test: &str) -> Vec<String> {
        let roots = Parents::of_environment().roots(&folder_name(suite_folder));
        let noted = |root: &PathBuf| fs::read_to_string(root.join("tests").join(test).join(REGIONS)).ok();
        let text = roots.iter().find_map(noted).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Workdir {
    fn drop(&mut self) {
        if let Ok(mut held) = HELD.lock() {
            held.retain(|root| *root != self.root);
        }
    }
}

/// The folder's last part: words for people, and what makes it unique.
fn folder_name(suite_folder: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    suite_folder.hash(&mut hasher);
    let last = suite_folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let safe: String = last.chars().filter(|letter| letter.is_ascii_alphanumeric()).take(30).collect();
    format!("{safe}-{:016x}", hasher.finish())
}

/// Opens the lock and waits for it.
fn locked(root: &Path, tell: impl FnOnce(&str)) -> io::Result<File> {
    let lock = mallow_files::lock_file(&root.join("lock"))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => return Ok(lock),
        Err(rustix::io::Errno::WOULDBLOCK) => {}
        Err(error) => return Err(error.into()),
    }
    tell(&format!("another check works in {}: waiting for it", root.display()));
    loop {
        match flock(&lock, FlockOperation::LockExclusive) {
            Ok(()) => return Ok(lock),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Where working folders can be, the best first.
#[derive(Debug)]
struct Parents {
    /// Somebody's own.
    own: Vec<PathBuf>,
    /// One that everybody can write to.
    temporary: PathBuf,
}

impl Parents {
    fn of_environment() -> Parents {
        let absolute = |name: &str| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        // As the XDG base directory specification has it: what is not absolute is ignored.
        let own = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
        Parents { own: own.into_iter().collect(), temporary: env::temp_dir() }
    }

    /// Where a folder may be, whether it is there or not.
    fn roots(&self, name: &str) -> Vec<PathBuf> {
        let own = self.own.iter().map(|parent| parent.join("mallow/check"));
        own.chain([self.in_temporary()]).map(|parent| parent.join(name)).collect()
    }

    fn in_temporary(&self) -> PathBuf {
        self.temporary.join(format!("mallow-check-{}", rustix::process::geteuid().as_raw()))
    }

    /// Makes the folder in the first place that can be written to.
    fn make_folder(&self, name: &str) -> Result<PathBuf, WorkdirError> {
        let mut tried = Vec::new();
        for parent in &self.own {
            let folder = parent.join("mallow/check").join(name);
            match made(&folder) {
                Ok(()) => return Ok(folder),
                Err(error) => tried.push((folder, error)),
            }
        }
        let folder = self.in_temporary();
        match mallow_files::private_folder(&folder).and_then(|()| made(&folder.join(name))) {
            Ok(()) => Ok(folder.join(name)),
            Err(error) => {
                tried.push((folder, error));
                Err(WorkdirError::NoPlace { tried })
            }
        }
    }
}

/// Makes a folder in which programs are built and from which they are run: nobody else may write it, or swap it for another.
fn made(folder: &Path) -> io::Result<()> {
    mallow_files::private_folder(folder)?;
    mallow_files::check_parents(folder)?;
    mallow_files::lock_file(&folder.join("lock"))?;
    programs_can_be_run(rustix::fs::statvfs(folder)?.f_flag)
}

/// Caches and temporary folders of hardened machines are often mounted so that nothing in them can be run.
fn programs_can_be_run(mount: StatVfsMountFlags) -> io::Result<()> {
    match mount.contains(StatVfsMountFlags::NOEXEC) {
        true => Err(io::Error::new(io::ErrorKind::PermissionDenied, "programs cannot be run there (noexec)")),
        false => Ok(()),
    }
}
