// Runs a command as on Linux 5.3, the oldest that mallow is for: what came later, a filter of system calls answers as that kernel did.
// older_kernel COMMAND...
#include "refusals.h"

// From `close_range` of Linux 5.9 on, every system call; `pidfd_open` and `clone3` of 5.3 come before it.
#define FIRST_LATER 436
#define FIRST_OF_X32 0x40000000

static void refuse_later_calls(void) {
    word(NUMBER);
    test(BPF_JGE, FIRST_LATER, 0, 2);
    test(BPF_JGE, FIRST_OF_X32, 1, 0);
    answer(ENOSYS);
}

int main(int count, char **words) {
    if (count < 2) return 2;
    refuse_later_calls();
    // MADV_COLD and PAGEOUT (5.4), POPULATE_READ and _WRITE (5.14), DONTNEED_LOCKED (5.18), COLLAPSE (6.1), GUARD_INSTALL and _REMOVE (6.13).
    const unsigned advice[] = {20, 21, 22, 23, 24, 25, 102, 103};
    for (unsigned i = 0; i < sizeof advice / sizeof *advice; i++) refuse(SYS_madvise, 2, ALL_BITS, advice[i], EINVAL);
    // P_PIDFD (5.4), PIDFD_NONBLOCK (5.10), SO_PEERPIDFD (6.5), the calls of a pidfd (6.13), PROCMAP_QUERY (6.11).
    refuse(SYS_waitid, 0, ALL_BITS, 3, EINVAL);
    refuse(SYS_pidfd_open, 1, O_NONBLOCK, O_NONBLOCK, EINVAL);
    refuse(SYS_getsockopt, 2, ALL_BITS, 77, ENOPROTOOPT);
    refuse(SYS_ioctl, 1, 0xff00, 0xff00, ENOTTY);
    refuse(SYS_ioctl, 1, 0xffff, 0x6611, ENOTTY);
    // MFD_NOEXEC_SEAL and MFD_EXEC (6.3), F_DUPFD_QUERY (6.10), MREMAP_DONTUNMAP (5.7), FUTEX_LOCK_PI2 (5.14).
    refuse(SYS_memfd_create, 1, 8, 8, EINVAL);
    refuse(SYS_memfd_create, 1, 16, 16, EINVAL);
    refuse(SYS_fcntl, 1, ALL_BITS, 1027, EINVAL);
    refuse(SYS_mremap, 3, 4, 4, EINVAL);
    refuse(SYS_futex, 1, 0x7f, 13, ENOSYS);
    // PR_SET_IO_FLUSHER (5.6), SYSCALL_USER_DISPATCH (5.11), SCHED_CORE (5.14), SET_MDWE (6.3), SET_VMA (5.17); the membarriers of 5.10.
    const unsigned options[] = {57, 58, 59, 62, 65, 66, 0x53564d41};
    for (unsigned i = 0; i < sizeof options / sizeof *options; i++) refuse(SYS_prctl, 0, ALL_BITS, options[i], EINVAL);
    refuse(SYS_membarrier, 0, 0x80, 0x80, EINVAL);
    return run(words + 1);
}
