//! When and how processes end.
//!
//! Our own child is waited for. Others have parents of their own, so their end is seen through a pidfd, and
//! their status comes from wherever it can still be had: from the pidfd (Linux 6.15), from `/proc` while they
//! wait to be reaped, or from what the recorder noted when the program announced its exit.

use crate::peer::Peer;
use mallow_profile::Exit;
use mallow_wire::shared::{EXIT_STATUS, Header};
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::Ordering;

impl Peer {
    /// Kills it if it was started by us. Returns false if it was not, and is still running: no other process may be
    /// killed, whatever it claims.
    pub(crate) fn kill(&self) -> bool {
        if self.has_ended() {
            return true;
        }
        let is_ours = self.is_descendant_of(std::process::id());
        if let (true, Some(pidfd)) = (is_ours, &self.pidfd) {
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
        }
        is_ours || self.has_ended()
    }

    /// Returns its exit status, as far as it can be known.
    pub(crate) fn exit(&self, header: &Header) -> Option<Exit> {
        let announced = || {
            (header.exit_kind.load(Ordering::Acquire) == EXIT_STATUS)
                .then(|| Exit::Status((header.exit_status.load(Ordering::Relaxed) & 0xff) as i32))
        };
        let raw = self.pidfd.as_ref().and_then(exit_from_pidfd).or_else(|| exit_from_proc(self.pid));
        raw.map(from_wait_status).or_else(announced)
    }

    /// Lets go of a process that has ended and whose parent ended before it, so that it became our child.
    pub(crate) fn reap(&self) {
        if let Some(pidfd) = self.pidfd.as_ref().filter(|_| self.has_ended()) {
            let _ = waitid(WaitId::PidFd(pidfd.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
    }
}

/// Decodes a status as `wait` returns it.
fn from_wait_status(raw: i32) -> Exit {
    match raw & 0x7f {
        0 => Exit::Status(raw >> 8 & 0xff),
        signal => Exit::Signal(signal),
    }
}

/// `PIDFD_GET_INFO` with `PIDFD_INFO_EXIT`, for processes that were reaped.
fn exit_from_pidfd(pidfd: &OwnedFd) -> Option<i32> {
    /// `struct pidfd_info`, first version. The fields between are identities that we do not need.
    #[repr(C)]
    #[derive(Default)]
    struct PidfdInfo {
        mask: u64,
        cgroup: u64,
        identities: [u32; 11],
        exit_code: i32,
    }
    const INFO_EXIT: u64 = 1 << 3;
    const GET_INFO: rustix::ioctl::Opcode = rustix::ioctl::opcode::read_write::<PidfdInfo>(0xff, 11);
    let mut info = PidfdInfo { mask: INFO_EXIT, ..PidfdInfo::default() };
    // SAFETY: the request takes a structure of this layout and size, and writes no further.
    let request = unsafe { rustix::ioctl::Updater::<GET_INFO, PidfdInfo>::new(&mut info) };
    // SAFETY: the descriptor is a pidfd; kernels that do not know the request refuse it.
    unsafe { rustix::ioctl::ioctl(pidfd.as_fd(), request) }.ok()?;
    (info.mask & INFO_EXIT != 0).then_some(info.exit_code)
}

/// The last field of `/proc/PID/stat`, while the process waits to be reaped.
fn exit_from_proc(pid: u32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold blanks; the state follows it.
    let fields = stat.rsplit_once(") ")?.1;
    if !fields.starts_with(['Z', 'X']) {
        return None;
    }
    fields.split_whitespace().last()?.parse().ok()
}

/// Converts the status of a child of ours.
pub fn exit_of_status(status: ExitStatus) -> Exit {
    from_wait_status(status.into_raw())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn exit_statuses_and_signals_are_distinguished() {
        assert_eq!(from_wait_status(7 << 8), Exit::Status(7));
        assert_eq!(from_wait_status(9), Exit::Signal(9));
        assert_eq!(from_wait_status(11 | 0x80), Exit::Signal(11));
    }

    #[test]
    fn a_zombie_shows_its_status() {
        let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let peer = Peer::of_pid(child.id());
        while !peer.has_ended() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(exit_from_proc(child.id()).map(from_wait_status), Some(Exit::Status(3)));
        child.wait().unwrap();
    }

    #[test]
    fn only_descendants_are_killed() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let peer = Peer::of_pid(child.id());
        assert!(peer.kill());
        assert_eq!(from_wait_status(child.wait().unwrap().into_raw()), Exit::Signal(9));
        assert!(peer.kill(), "who has ended needs no killing");
        // The one that started us is none of our children.
        let parent = crate::peer::parent_of(std::process::id()).unwrap();
        assert!(!Peer::of_pid(parent).kill());
    }
}
