//! Roots of observed processes that see other files than we do: in a mount namespace of their own, or after a chroot.
//!
//! A name needs the file that ran. A root is held open from when its process is met, so that its files are found when the process has ended; which of
//! them is the right one is for whoever reads it to prove. A root that only one process has, which ends in the moment in which it is met, is missed.
//! Links below such a root lead to files below it, and nowhere else.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags, openat, openat2, statx};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Roots that are held. A program that makes more than these for its children has no names from the others.
const ROOTS_MAX: usize = 64;

/// The root of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Root {
    /// It is ours.
    Own,
    /// Another one, which is held: its number.
    Other(usize),
}

/// A root that is held, and what tells it from others.
#[derive(Debug)]
struct Held {
    folder: OwnedFd,
    /// Its mounts are there as long as somebody holds this.
    _namespace: OwnedFd,
    key: Key,
}

/// The mount namespace, and the root's mount and number in it: a folder that is mounted a second time has the same number there.
type Key = (u64, u64, u64);

static ROOTS: Mutex<Vec<Held>> = Mutex::new(Vec::new());

/// Holds the root of a process, where it is another one than ours. `has_ended` says whether the process that is meant has: another one may have its number
/// then. None where it has, where nobody may look, and where too many are held.
pub fn hold(pid: u32, has_ended: impl FnOnce() -> bool) -> Option<Root> {
    // What is opened below stays that of one process, whoever has its number later.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let process = openat(CWD, format!("/proc/{pid}"), flags, Mode::empty()).ok()?;
    if has_ended() {
        return None;
    }
    let key = key_of(&process)?;
    let mut roots = ROOTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = roots.iter().position(|root| root.key == key) {
        return Some(Root::Other(known));
    }
    let own = openat(CWD, "/proc/self", flags, Mode::empty()).ok()?;
    if key_of(&own) == Some(key) {
        return Some(Root::Own);
    }
    if roots.len() == ROOTS_MAX {
        return None;
    }
    let folder = openat(&process, "root", flags, Mode::empty()).ok()?;
    let namespace = openat(&process, "ns/mnt", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    roots.push(Held { folder, _namespace: namespace, key });
    Some(Root::Other(roots.len() - 1))
}

/// The files at a path below each of the roots, opened for nothing but to be named by `/proc/self/fd`.
pub fn files_in_other_roots(path: &Path) -> Vec<OwnedFd> {
    let roots = ROOTS.lock().unwrap_or_else(PoisonError::into_inner);
    roots.iter().filter_map(|root| file(root, path)).collect()
}

/// The file at a path below one of the roots, opened in the same way.
pub fn file_in_root(number: usize, path: &Path) -> Option<OwnedFd> {
    let roots = ROOTS.lock().unwrap_or_else(PoisonError::into_inner);
    file(roots.get(number)?, path)
}

fn file(root: &Held, path: &Path) -> Option<OwnedFd> {
    let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    openat2(&root.folder, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), within).ok()
}

fn key_of(process: &impl AsFd) -> Option<Key> {
    let found = |name: &str| {
        let wanted = StatxFlags::INO | StatxFlags::MNT_ID;
        statx(process, name, AtFlags::empty(), wanted).ok()
    };
    let (namespace, root) = (found("ns/mnt")?, found("root/.")?);
    Some((namespace.stx_ino, root.stx_mnt_id, root.stx_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_root_is_not_held() {
        assert_eq!(hold(std::process::id(), || false), Some(Root::Own));
        assert_eq!(hold(std::process::id(), || true), None);
        assert!(files_in_other_roots(Path::new("/")).is_empty() && file_in_root(0, Path::new("/")).is_none());
    }
}
