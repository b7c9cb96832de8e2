//! The priority of the thread that reads samples. Beside hundreds of threads that want to run, one that wakes up waits for half a second, and the ring of a processor
//! holds a quarter of one: of 400 threads on two processors up to half of the samples were lost.

use nix::libc;
use std::marker::PhantomData;

/// While it lives, its thread runs as soon as there is something to read, where the system allows that (root's processes, and those with CAP_SYS_NICE). A
/// sample takes some microseconds; and what the thread starts has no such priority.
#[derive(Debug)]
pub(crate) struct Urgent {
    was_raised: bool,
    /// It is this thread's.
    _thread: PhantomData<*const ()>,
}

impl Urgent {
    /// Raises this thread's priority, unless the user has chosen another one than the usual.
    pub(crate) fn begin() -> Urgent {
        let was_raised = policy() == libc::c_long::from(libc::SCHED_OTHER)
            && set(libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, 1);
        Urgent { was_raised, _thread: PhantomData }
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        if self.was_raised {
            // Allowed to everybody: it is the lower one.
            set(libc::SCHED_OTHER, 0);
        }
    }
}

/// The policy of this thread. musl's function for it, and for setting one, is not made: both always say that the system knows no such call.
fn policy() -> libc::c_long {
    // SAFETY: asks for a number.
    unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) }
}

/// Sets the policy of this thread; false if the system refuses it.
fn set(policy: i32, priority: i32) -> bool {
    // The kernel's `struct sched_param` is this number alone. musl's has more members.
    // SAFETY: reads the number, which lives until the call returns.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> i32 {
        super::policy() as i32
    }

    #[test]
    fn the_reader_alone_is_urgent_and_no_longer_than_it_reads() {
        assert_eq!(policy(), libc::SCHED_OTHER);
        let urgent = Urgent::begin();
        let expected =
            if urgent.was_raised { libc::SCHED_RR | libc::SCHED_RESET_ON_FORK } else { libc::SCHED_OTHER };
        assert_eq!(policy(), expected);
        assert_eq!(std::thread::spawn(policy).join().unwrap(), libc::SCHED_OTHER);
        let chrt = std::process::Command::new("chrt").args(["-p", "0"]).output().unwrap();
        let shown = String::from_utf8(chrt.stdout).unwrap();
        assert!(shown.contains("SCHED_OTHER") && !shown.contains("SCHED_RR"), "{shown}");
        drop(urgent);
        assert_eq!(policy(), libc::SCHED_OTHER);
    }
}
