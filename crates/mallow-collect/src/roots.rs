//! Roots of recorded processes that see other files than we do: in a mount namespace of their own, or after a chroot.
//!
//! A name needs the file that ran. A root is held open from when its process introduces itself, so that its files are found when the process has ended; which of
//! them is the right one is for whoever reads it to prove. A root that only one process has, which ends in the moment in which it introduces itself, is missed.
//! Links below such a root lead to files below it, and nowhere else.

use crate::peer::Peer;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, StatxFlags, openat, openat2, statx};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Roots that are held. A program that makes more than these for its children has no names from the others.
const ROOTS_MAX: usize = 64;

/// A root, and what tells it from others.
#[derive(Debug)]
struct Root {
    folder: OwnedFd,
    /// Its mounts are there as long as somebody holds this.
    _namespace: OwnedFd,
    key: Key,
}

/// The mount namespace, and the root's mount and number in it: a folder that is mounted a second time has the same number there.
type Key = (u64, u64, u64);

static ROOTS: Mutex<Vec<Root>> = Mutex::new(Vec::new());

/// Holds the root of a process that has introduced itself, where it is another one than ours.
pub(crate) fn meet(peer: &Peer) {
    let Some(key) = key_of(&peer.pid.to_string()) else { return };
    let mut roots = ROOTS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_known = roots.iter().any(|root| root.key == key) || key_of("self") == Some(key);
    if is_known || roots.len() == ROOTS_MAX {
        return;
    }
    let open = |name: &str, flags| openat(CWD, format!("/proc/{}/{name}", peer.pid), flags, Mode::empty());
    let folder = open("root", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC);
    let namespace = open("ns/mnt", OFlags::RDONLY | OFlags::CLOEXEC);
    // While it runs nobody else has its number.
    if let (Ok(folder), Ok(namespace)) = (folder, namespace)
        && !peer.has_ended()
    {
        roots.push(Root { folder, _namespace: namespace, key });
    }
}

/// The files at a path below each of the roots, opened for nothing but to be named by `/proc/self/fd`.
pub fn files_in_other_roots(path: &Path) -> Vec<OwnedFd> {
    let roots = ROOTS.lock().unwrap_or_else(PoisonError::into_inner);
    let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let file =
        |root: &Root| openat2(&root.folder, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), within);
    roots.iter().filter_map(|root| file(root).ok()).collect()
}

fn key_of(process: &str) -> Option<Key> {
    let found = |name: &str| {
        let wanted = StatxFlags::INO | StatxFlags::MNT_ID;
        statx(CWD, format!("/proc/{process}/{name}"), AtFlags::empty(), wanted).ok()
    };
    let (namespace, root) = (found("ns/mnt")?, found("root/.")?);
    Some((namespace.stx_ino, root.stx_mnt_id, root.stx_ino))
}
