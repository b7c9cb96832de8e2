//! Who is at the other end of a connection: a process, held so that no later one is taken for it.
//!
//! A number names a process only until it has ended; then another one may get it. So a peer is known by a pidfd, which the kernel hands out for
//! whoever connected (`SO_PEERPIDFD`, Linux 6.5). Before that the number is opened, and what it opens is not taken for the peer when it belongs to
//! somebody else and was not started by us.

use nix::sys::socket::{getsockopt, sockopt};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open, test_kill_process};
use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

/// A process.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Its id as we see it.
    pub(crate) pid: u32,
    /// None when it has ended, and was reaped.
    pub(crate) pidfd: Option<OwnedFd>,
}

/// The maximal number of ancestors that are checked. Chains of processes that start each other are shorter.
const ANCESTORS_MAX: usize = 256;

impl Peer {
    /// Returns the current process with this pid.
    pub(crate) fn of_pid(pid: u32) -> Peer {
        let pidfd = Pid::from_raw(pid as i32).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Peer { pid, pidfd }
    }

    /// The same process once more.
    pub(crate) fn try_clone(&self) -> Option<Peer> {
        let pidfd = self.pidfd.as_ref().map(OwnedFd::try_clone).transpose().ok()?;
        Some(Peer { pid: self.pid, pidfd })
    }

    /// Returns the process that connected. `None` if it is outside our pid namespace, and so none of our children.
    pub(crate) fn of_connection(connection: &OwnedFd) -> Option<Peer> {
        let (pid, uid) = credentials(connection)?;
        match getsockopt(connection, sockopt::PeerPidfd) {
            Ok(pidfd) => Some(Peer { pid, pidfd: Some(pidfd) }),
            // An older kernel.
            Err(nix::errno::Errno::ENOPROTOOPT) => Some(Peer::by_number(pid, uid)),
            // It has been reaped.
            Err(_) => Some(Peer { pid, pidfd: None }),
        }
    }

    /// Returns the process that connected, identified by its pid only.
    fn by_number(pid: u32, uid: u32) -> Peer {
        let peer = Peer::of_pid(pid);
        let is_its_user = fs::metadata(format!("/proc/{pid}")).is_ok_and(|found| found.uid() == uid);
        if is_its_user || peer.is_descendant_of(std::process::id()) {
            return peer;
        }
        Peer { pid, pidfd: None }
    }

    /// Returns whether all of its threads have ended.
    pub(crate) fn has_ended(&self) -> bool {
        have_ended([self].into_iter()) == [true]
    }

    /// Returns whether it was started by a process, or by one that was, and still runs.
    pub(crate) fn is_descendant_of(&self, ancestor: u32) -> bool {
        let ancestors = ancestors(self.pid);
        // While it runs no other process has its pid. An ancestor's pid may have been reused between two checks, but
        // not twice in the same way.
        ancestors.contains(&ancestor) && ancestors == self::ancestors(self.pid) && !self.has_ended()
    }
}

/// Returns of each of some processes whether all of its threads have ended. The kernel is asked once, however many they are.
pub(crate) fn have_ended<'a>(peers: impl Iterator<Item = &'a Peer> + Clone) -> Vec<bool> {
    let pidfds = peers.clone().filter_map(|peer| peer.pidfd.as_ref());
    let mut polled: Vec<PollFd<'_>> = pidfds.map(|pidfd| PollFd::new(pidfd, PollFlags::IN)).collect();
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let answer = poll(&mut polled, Some(&now));
    if answer.is_err_and(|error| error != Errno::INTR) {
        return peers.map(|peer| peer.pidfd.is_none() || is_gone(peer.pid)).collect();
    }
    let mut ended = polled.iter().map(|it| answer.is_ok() && !it.revents().is_empty());
    peers.map(|peer| peer.pidfd.is_none() || ended.next() == Some(true)).collect()
}

/// Whether a process has ended and was waited for: all that can be known where the system refuses to poll its pidfd.
fn is_gone(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// The id and the user that a connection began with.
fn credentials(connection: &impl AsFd) -> Option<(u32, u32)> {
    let credentials = getsockopt(&connection.as_fd(), sockopt::PeerCredentials).ok()?;
    let pid = u32::try_from(credentials.pid()).ok().filter(|pid| *pid > 0)?;
    Some((pid, credentials.uid()))
}

/// The processes that led to one: its parent first.
fn ancestors(pid: u32) -> Vec<u32> {
    let up = std::iter::successors(parent_of(pid), |parent| parent_of(*parent));
    up.take(ANCESTORS_MAX).collect()
}

/// The process that started one, or that took it over; none for the first one.
pub(crate) fn parent_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything; the state and the parent follow it.
    let parent: u32 = stat.rsplit_once(") ")?.1.split_whitespace().nth(1)?.parse().ok()?;
    (parent > 0).then_some(parent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    #[test]
    fn a_peer_is_identified_by_pidfd_and_by_pid() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let connection = OwnedFd::from(ours);
        let me = std::process::id();
        let peer = Peer::of_connection(&connection).unwrap();
        assert_eq!((peer.pid, peer.has_ended()), (me, false));
        let (pid, uid) = credentials(&connection).unwrap();
        let peer = Peer::by_number(pid, uid);
        assert_eq!((peer.pid, peer.has_ended()), (me, false));
        // Somebody else's number, by another user's word.
        assert!(Peer::by_number(1, uid + 1).has_ended());
    }

    #[test]
    fn only_children_and_grandchildren_are_descendants() {
        let mut child = Command::new("sh")
            .args(["-c", "sleep 100 & echo $!; wait"])
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
            .unwrap();
        let (me, grandchild) = (std::process::id(), line.trim().parse().unwrap());
        let [child_peer, grandchild_peer] = [child.id(), grandchild].map(Peer::of_pid);
        assert!(child_peer.is_descendant_of(me) && grandchild_peer.is_descendant_of(me));
        assert!(grandchild_peer.is_descendant_of(child.id()) && !child_peer.is_descendant_of(grandchild));
        assert!(!Peer::of_pid(1).is_descendant_of(me) && !Peer::of_pid(me).is_descendant_of(child.id()));
        let group = Pid::from_raw(child.id() as i32).unwrap();
        rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
        child.wait().unwrap();
        // Its number may be anybody's now.
        assert!(child_peer.has_ended() && !child_peer.is_descendant_of(me));
        assert!(Peer::of_pid(child.id()).has_ended());
    }

    #[test]
    fn many_are_asked_for_at_once() {
        let mut children: Vec<_> = (0..4).map(|_| Command::new("sleep").arg("60").spawn().unwrap()).collect();
        let mut peers: Vec<Peer> = children.iter().map(|child| Peer::of_pid(child.id())).collect();
        // Reaped before anybody could open it.
        peers.insert(1, Peer { pid: children[0].id(), pidfd: None });
        assert_eq!(have_ended(peers.iter()), [false, true, false, false, false]);
        for at in [1, 3] {
            children[at].kill().unwrap();
            children[at].wait().unwrap();
        }
        assert_eq!(have_ended(peers.iter()), [false, true, true, false, true]);
        children.iter_mut().for_each(|child| drop(child.kill().and_then(|()| child.wait())));
    }
}
