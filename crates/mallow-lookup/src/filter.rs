//! Which system calls a worker may make from before it reads the first byte of a module: those that read files, take memory, start threads of its own, and
//! answer. Whoever ran code of his own there could open no file to write, start nothing, send no signal and make no socket.
//!
//! A program of the kernel's packet filter, as described in its `Documentation/userspace-api/seccomp_filter.rst`. A call that is not in the list fails with EPERM, so that one that a
//! library begins to make costs what it wanted, and not the worker.

use libc::{BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W};
use libc::{SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SECCOMP_RET_KILL_PROCESS, sock_filter, sock_fprog};

/// Allowed, whatever their arguments.
const ALLOWED: &[libc::c_long] = &[
    libc::SYS_access,
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_futex,
    libc::SYS_getcwd,
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_lseek,
    libc::SYS_lstat,
    libc::SYS_madvise,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_newfstatat,
    libc::SYS_poll,
    libc::SYS_pread64,
    libc::SYS_read,
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_sendmsg,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    libc::SYS_stat,
    libc::SYS_statfs,
    libc::SYS_statx,
    libc::SYS_write,
];

/// Offsets in what a filter is given: the call's number, the processor, and the lower halves of arguments.
const NUMBER: u32 = 0;
const PROCESSOR: u32 = 4;
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
const REFUSED: u32 = SECCOMP_RET_ERRNO | libc::EPERM as u32;
const UNKNOWN: u32 = SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

/// Sets the filter. Where the kernel has none, limits are all that there is.
pub(crate) fn install() {
    let mut program = program(std::process::id());
    let filter = sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the kernel copies the program, which lives as long as the call.
    unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter) };
}

fn program(own_process: u32) -> Vec<sock_filter> {
    let mut program = vec![load(PROCESSOR)];
    program.extend([
        instruction(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AUDIT_ARCH_X86_64),
        end(SECCOMP_RET_KILL_PROCESS),
    ]);
    program.push(load(NUMBER));
    for call in ALLOWED {
        program.extend(in_case_of(*call, &[end(SECCOMP_RET_ALLOW)]));
    }
    let writes = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND | libc::O_TMPFILE) as u32;
    // `O_TMPFILE` has the bit of `O_DIRECTORY` in it, which does no harm alone; no folder is opened here.
    program.extend(in_case_of(libc::SYS_open, &allow_if(1, writes, &[0])));
    program.extend(in_case_of(libc::SYS_openat, &allow_if(2, writes, &[0])));
    // Threads and no processes: a library that does not get the newer call makes the older one, which can be looked at.
    program.extend(in_case_of(libc::SYS_clone3, &[end(UNKNOWN)]));
    let thread = libc::CLONE_THREAD as u32;
    program.extend(in_case_of(libc::SYS_clone, &allow_if(0, thread, &[thread])));
    let copies = [libc::F_GETFD, libc::F_GETFL, libc::F_DUPFD_CLOEXEC].map(|command| command as u32);
    program.extend(in_case_of(libc::SYS_fcntl, &allow_if(1, u32::MAX, &copies)));
    // Its own limits, and its own end.
    program.extend(in_case_of(libc::SYS_prlimit64, &allow_if(0, u32::MAX, &[0])));
    program.extend(in_case_of(libc::SYS_tgkill, &allow_if(0, u32::MAX, &[own_process])));
    program.extend(in_case_of(libc::SYS_tkill, &allow_if(0, u32::MAX, &[own_process])));
    program.push(end(REFUSED));
    program
}

/// What is done about one call, and ends there.
fn in_case_of(call: libc::c_long, then: &[sock_filter]) -> Vec<sock_filter> {
    let mut block = vec![instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, then.len() as u8, call as u32)];
    block.extend_from_slice(then);
    block
}

/// Allows the call if these bits of an argument are one of some values.
fn allow_if(index: u32, bits: u32, values: &[u32]) -> Vec<sock_filter> {
    let mut block = vec![load(argument(index)), instruction(BPF_ALU | BPF_AND | BPF_K, 0, 0, bits)];
    for value in values {
        block.extend([instruction(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, *value), end(SECCOMP_RET_ALLOW)]);
    }
    block.push(end(REFUSED));
    block
}

fn load(offset: u32) -> sock_filter {
    instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0, offset)
}

fn end(how: u32) -> sock_filter {
    instruction(BPF_RET | BPF_K, 0, 0, how)
}

fn instruction(code: u32, if_true: u8, if_false: u8, value: u32) -> sock_filter {
    sock_filter { code: code as u16, jt: if_true, jf: if_false, k: value }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the program answers to a call with these arguments.
    fn answer(call: libc::c_long, arguments: [u64; 3]) -> u32 {
        run(AUDIT_ARCH_X86_64, call as u32, arguments)
    }

    /// The few instructions that the program has, as the kernel executes them.
    fn run(processor: u32, number: u32, arguments: [u64; 3]) -> u32 {
        let program = program(77);
        assert!(program.len() <= 4096, "the kernel takes no longer program");
        let (mut value, mut at) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            match u32::from(code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => {
                    value = match k {
                        NUMBER => number,
                        PROCESSOR => processor,
                        _ => arguments[(k as usize - 16) / 8] as u32,
                    }
                }
                code if code == BPF_ALU | BPF_AND | BPF_K => value &= k,
                code if code == BPF_JMP | BPF_JEQ | BPF_K => {
                    at += usize::from(if value == k { jt } else { jf });
                }
                code if code == BPF_RET | BPF_K => return k,
                code => panic!("instruction {code:#x}"),
            }
        }
    }

    #[test]
    fn files_are_opened_to_be_read_alone() {
        for (flags, expected) in [
            (libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK, SECCOMP_RET_ALLOW),
            (libc::O_WRONLY, REFUSED),
            (libc::O_RDWR, REFUSED),
            (libc::O_RDONLY | libc::O_CREAT, REFUSED),
            (libc::O_RDONLY | libc::O_TRUNC, REFUSED),
            (libc::O_TMPFILE | libc::O_RDWR, REFUSED),
        ] {
            assert_eq!(answer(libc::SYS_openat, [0, 0, flags as u64]), expected, "{flags:o}");
            assert_eq!(answer(libc::SYS_open, [0, flags as u64, 0]), expected, "{flags:o}");
        }
    }

    #[test]
    fn threads_are_started_and_processes_are_not() {
        let thread = (libc::CLONE_VM | libc::CLONE_THREAD | libc::CLONE_SIGHAND) as u64;
        assert_eq!(answer(libc::SYS_clone, [thread, 0, 0]), SECCOMP_RET_ALLOW);
        assert_eq!(answer(libc::SYS_clone, [libc::SIGCHLD as u64, 0, 0]), REFUSED);
        assert_eq!(answer(libc::SYS_clone3, [0; 3]), UNKNOWN);
        for call in [libc::SYS_fork, libc::SYS_vfork, libc::SYS_execve, libc::SYS_execveat] {
            assert_eq!(answer(call, [0; 3]), REFUSED, "{call}");
        }
    }

    #[test]
    fn nothing_reaches_other_processes_or_changes_files() {
        for call in [
            libc::SYS_kill,
            libc::SYS_ptrace,
            libc::SYS_process_vm_writev,
            libc::SYS_pidfd_open,
            libc::SYS_socket,
            libc::SYS_connect,
            libc::SYS_unlink,
            libc::SYS_rename,
            libc::SYS_mkdir,
            libc::SYS_link,
            libc::SYS_symlink,
            libc::SYS_chmod,
            libc::SYS_truncate,
            libc::SYS_utimensat,
            libc::SYS_io_uring_setup,
            libc::SYS_openat2,
            libc::SYS_bpf,
            libc::SYS_mount,
            libc::SYS_memfd_create,
            libc::SYS_ioctl,
            libc::SYS_setxattr,
        ] {
            assert_eq!(answer(call, [0; 3]), REFUSED, "{call}");
        }
        assert_eq!(answer(libc::SYS_tgkill, [77, 78, 6]), SECCOMP_RET_ALLOW, "its own end");
        assert_eq!(answer(libc::SYS_tgkill, [76, 76, 9]), REFUSED);
        assert_eq!(answer(libc::SYS_prlimit64, [0, 2, 0]), SECCOMP_RET_ALLOW);
        assert_eq!(answer(libc::SYS_prlimit64, [76, 2, 0]), REFUSED);
        assert_eq!(answer(libc::SYS_fcntl, [3, libc::F_DUPFD_CLOEXEC as u64, 0]), SECCOMP_RET_ALLOW);
        assert_eq!(answer(libc::SYS_fcntl, [3, libc::F_SETFL as u64, 0]), REFUSED);
    }

    /// Calls of the 32-bit kind have other numbers.
    #[test]
    fn calls_of_another_processor_end_the_worker() {
        assert_eq!(run(0x4000_0003, libc::SYS_read as u32, [0; 3]), SECCOMP_RET_KILL_PROCESS);
        const X32: u32 = 0x4000_0000;
        assert_eq!(run(AUDIT_ARCH_X86_64, X32 | libc::SYS_read as u32, [0; 3]), REFUSED);
    }
}
