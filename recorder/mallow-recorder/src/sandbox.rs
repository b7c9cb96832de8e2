//! Which calls lock a thread in, part its rights from those of other threads, or want it to be the only one.

const SYS_PRCTL: u64 = 157;
const SYS_UNSHARE: u64 = 272;
const SYS_SETNS: u64 = 308;
const SYS_SECCOMP: u64 = 317;
const PR_SET_KEEPCAPS: u64 = 8;
const PR_SET_SECUREBITS: u64 = 28;
const PR_SET_SECCOMP: u64 = 22;
const PR_SET_TSC: u64 = 26;
const PR_TSC_SIGSEGV: u64 = 2;
const PR_SET_SYSCALL_USER_DISPATCH: u64 = 59;
const DISPATCH_OUTSIDE: u64 = 1;
const DISPATCH_INSIDE: u64 = 2;
const SECCOMP_MODE_STRICT: u64 = 1;
const SECCOMP_MODE_FILTER: u64 = 2;
const SECCOMP_SET_MODE_STRICT: u64 = 0;
const SECCOMP_SET_MODE_FILTER: u64 = 1;

/// How a system call is about to restrict its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restriction {
    /// Nothing.
    Open,
    /// System calls are filtered, by the `struct sock_fprog` at an address.
    Filtered(u64),
    /// No call of ours is possible, or no time stamp.
    Closed,
    /// As closed, but of this thread alone: neither its children nor the program that takes its place have it.
    Dispatched,
    /// It changes what becomes of this thread's rights when the user changes. The C library changes the user of all threads, and ends the process when that
    /// goes well in one and not in another.
    Rights,
    /// Nothing, but the kernel refuses it to a process of several threads.
    Alone,
}

/// Returns the effect of `prctl` with these arguments. A filter at a null address is not set: libraries probe in this
/// way what the kernel supports.
pub fn of_prctl(option: u64, value: u64, pointer: u64, bytes: u64) -> Restriction {
    // System calls become signals: outside of a range of code, or within it.
    let is_within = (of_prctl as *const () as u64).wrapping_sub(pointer) < bytes;
    match (option, value) {
        (PR_SET_SYSCALL_USER_DISPATCH, DISPATCH_OUTSIDE) if !is_within => Restriction::Dispatched,
        (PR_SET_SYSCALL_USER_DISPATCH, DISPATCH_INSIDE) if is_within => Restriction::Dispatched,
        (PR_SET_SECCOMP, SECCOMP_MODE_STRICT) | (PR_SET_TSC, PR_TSC_SIGSEGV) => Restriction::Closed,
        (PR_SET_SECCOMP, SECCOMP_MODE_FILTER) if pointer != 0 => Restriction::Filtered(pointer),
        (PR_SET_KEEPCAPS, 1..) | (PR_SET_SECUREBITS, _) => Restriction::Rights,
        _ => Restriction::Open,
    }
}

const CLONE_NEWTIME: u64 = 0x80;
const CLONE_VM: u64 = 0x100;
const CLONE_SIGHAND: u64 = 0x800;
const CLONE_THREAD: u64 = 0x1_0000;
const CLONE_NEWNS: u64 = 0x2_0000;
const CLONE_NEWUSER: u64 = 0x1000_0000;

/// Returns the effect of `unshare` with these flags.
pub fn of_unshare(flags: u64) -> Restriction {
    match flags & (CLONE_NEWUSER | CLONE_THREAD | CLONE_SIGHAND | CLONE_VM) {
        0 => Restriction::Open,
        _ => Restriction::Alone,
    }
}

/// Returns the effect of `setns` for these kinds of namespaces; 0 stands for any.
pub fn of_setns(kinds: u64) -> Restriction {
    match kinds & (CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWTIME) {
        0 if kinds != 0 => Restriction::Open,
        _ => Restriction::Alone,
    }
}

/// Returns whether a system call ends the process, which a thread in strict mode can do in this way only. Every call
/// of `syscall` runs this, so the thread is checked for one number only.
pub fn is_exit(number: u64, is_main_thread: impl FnOnce() -> bool) -> bool {
    const SYS_EXIT: u64 = 60;
    const SYS_EXIT_GROUP: u64 = 231;
    number == SYS_EXIT_GROUP || number == SYS_EXIT && is_main_thread()
}

/// Returns the effect of a system call with this number and these arguments.
pub fn of_syscall(number: u64, first: u64, second: u64, third: u64) -> Restriction {
    match (number, first) {
        // Where a range of code ends is not among these.
        (SYS_PRCTL, PR_SET_SYSCALL_USER_DISPATCH) if second != 0 => Restriction::Dispatched,
        (SYS_PRCTL, _) => of_prctl(first, second, third, 0),
        (SYS_UNSHARE, _) => of_unshare(first),
        (SYS_SETNS, _) => of_setns(second),
        // With flags the kernel refuses it.
        (SYS_SECCOMP, SECCOMP_SET_MODE_STRICT) if second == 0 && third == 0 => Restriction::Closed,
        (SYS_SECCOMP, SECCOMP_SET_MODE_FILTER) if third != 0 => Restriction::Filtered(third),
        _ => Restriction::Open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_may_end_alone() {
        assert_eq!(
            [(60, true), (60, false), (231, false), (59, true)]
                .map(|(number, main)| is_exit(number, || main)),
            [true, false, true, false]
        );
    }

    #[test]
    fn system_calls_that_sandbox_a_thread_are_recognised() {
        use Restriction::{Closed, Filtered, Open};
        assert_eq!(
            [of_prctl(38, 1, 0, 0), of_prctl(PR_SET_SECCOMP, 2, 9, 0), of_prctl(PR_SET_SECCOMP, 1, 9, 0)],
            [Open, Filtered(9), Closed]
        );
        assert_eq!([of_prctl(PR_SET_TSC, 2, 0, 0), of_prctl(PR_SET_TSC, 1, 0, 0)], [Closed, Open]);
        assert_eq!(of_syscall(SYS_PRCTL, PR_SET_SECCOMP, 2, 9), Filtered(9));
        assert_eq!(
            [of_syscall(SYS_SECCOMP, 0, 0, 0), of_syscall(SYS_SECCOMP, 1, 0, 9)],
            [Closed, Filtered(9)]
        );
        assert_eq!([of_syscall(SYS_SECCOMP, 2, 0, 9), of_syscall(202, 1, 0, 9)], [Open, Open]);
    }

    #[test]
    fn programs_that_keep_privileges_are_recognised() {
        assert_eq!(
            [of_prctl(8, 1, 0, 0), of_prctl(28, 4, 0, 0), of_syscall(157, 8, 1, 0)],
            [Restriction::Rights; 3]
        );
        assert_eq!(of_prctl(8, 0, 0, 0), Restriction::Open);
    }

    #[test]
    fn calls_for_which_a_process_has_to_have_one_thread_are_recognised() {
        use Restriction::{Alone, Open};
        assert_eq!([of_unshare(CLONE_NEWUSER | CLONE_NEWNS), of_unshare(CLONE_NEWNS)], [Alone, Open]);
        assert_eq!([of_setns(0), of_setns(CLONE_NEWNS), of_setns(0x4000_0000)], [Alone, Alone, Open]);
        assert_eq!([of_syscall(272, CLONE_NEWUSER, 0, 0), of_syscall(308, 3, 0, 0)], [Alone, Alone]);
    }

    #[test]
    #[cfg_attr(miri, ignore = "a function has another address for each use")]
    fn who_turns_our_system_calls_into_signals_is_recognised() {
        use Restriction::{Dispatched, Open};
        let own = of_prctl as *const () as u64;
        let set = |value, from, bytes| of_prctl(PR_SET_SYSCALL_USER_DISPATCH, value, from, bytes);
        assert_eq!([set(1, 0, 0), set(1, own - 8, 16), set(1, own + 1, 16)], [Dispatched, Open, Dispatched]);
        assert_eq!([set(2, own - 8, 16), set(2, 0, 16), set(0, 0, 0)], [Dispatched, Open, Open]);
        assert_eq!([of_syscall(SYS_PRCTL, 59, 1, 0), of_syscall(SYS_PRCTL, 59, 0, 0)], [Dispatched, Open]);
    }

    /// As libseccomp does before it sets one.
    #[test]
    fn probing_for_seccomp_support_is_no_sandbox() {
        assert_eq!(of_syscall(SYS_SECCOMP, 0, 1, 0), Restriction::Open);
        assert_eq!(of_syscall(SYS_SECCOMP, 1, 2, 0), Restriction::Open);
        assert_eq!(of_prctl(PR_SET_SECCOMP, 2, 0, 0), Restriction::Open);
    }
}
