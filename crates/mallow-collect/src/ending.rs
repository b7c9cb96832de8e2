//! When and how processes end.
//!
//! Our own child is waited for. Others have parents of their own, so their end is seen through a pidfd, and
//! their status comes from wherever it can still be had: from the pidfd (Linux 6.15), from `/proc` while they
//! wait to be reaped, or from what the recorder noted when the program announced its exit.

use mallow_profile::Exit;
use mallow_wire::shared::{EXIT_STATUS, Header};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::Ordering;

/// Watches one process that may not be our child.
#[derive(Debug)]
pub(crate) struct Watch {
    pid: u32,
    pidfd: Option<OwnedFd>,
}

impl Watch {
    /// Begins to watch. A process that has ended already, and was reaped, counts as ended.
    pub(crate) fn new(pid: u32) -> Watch {
        let pidfd = Pid::from_raw(pid as i32).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Watch { pid, pidfd }
    }

    /// Whether all of its threads have ended.
    pub(crate) fn has_ended(&self) -> bool {
        let Some(pidfd) = &self.pidfd else { return true };
        let mut polled = [PollFd::new(pidfd, PollFlags::IN)];
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut polled, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// Ends it at once: this process, not another one that has its id by now.
    pub(crate) fn kill(&self) {
        if let Some(pidfd) = &self.pidfd {
            let _ = pidfd_send_signal(pidfd, Signal::KILL);
        }
    }

    /// How it ended, as far as anybody knows.
    pub(crate) fn exit(&self, header: &Header) -> Option<Exit> {
        let announced = || {
            (header.exit_kind.load(Ordering::Acquire) == EXIT_STATUS)
                .then(|| Exit::Status((header.exit_status.load(Ordering::Relaxed) & 0xff) as i32))
        };
        let raw = self.pidfd.as_ref().and_then(exit_from_pidfd).or_else(|| exit_from_proc(self.pid));
        raw.map(from_wait_status).or_else(announced)
    }
}

/// Reads a status as `wait` gives it.
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

/// How a child of ours ended.
pub fn exit_of_status(status: ExitStatus) -> Exit {
    from_wait_status(status.into_raw())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn statuses_and_signals_are_told_apart() {
        assert_eq!(from_wait_status(7 << 8), Exit::Status(7));
        assert_eq!(from_wait_status(9), Exit::Signal(9));
        assert_eq!(from_wait_status(11 | 0x80), Exit::Signal(11));
    }

    #[test]
    fn a_zombie_shows_its_status() {
        let mut child = Command::new("sh").args(["-c", "exit 3"]).spawn().unwrap();
        let watch = Watch::new(child.id());
        while !watch.has_ended() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert_eq!(exit_from_proc(child.id()).map(from_wait_status), Some(Exit::Status(3)));
        child.wait().unwrap();
    }
}
