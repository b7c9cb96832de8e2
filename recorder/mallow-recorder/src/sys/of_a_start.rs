//! The calls that a recording begins with in a program that is started, and those that come before its start is noted.

use super::sockets::{CONNECT, POLL, RECVMSG, SENDMSG, SENDTO, SETSOCKOPT, SOCKET};
use super::*;

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Its number.
    pub number: usize,
    /// Its first arguments.
    pub arguments: [usize; 3],
    /// Whether something else is done, or left out, where it fails.
    pub may_fail: bool,
}

const fn needs(number: usize, arguments: [usize; 3]) -> Call {
    Call { number, arguments, may_fail: false }
}

const fn tries(number: usize, arguments: [usize; 3]) -> Call {
    Call { number, arguments, may_fail: true }
}

/// Their numbers, and the first arguments by which somebody might decide: flags and commands. Pointers, lengths and descriptors are 0.
pub const CALLS_OF_A_START: [Call; 41] = [
    needs(READ, NONE),
    needs(CLOSE, NONE),
    tries(STAT, NONE),
    needs(FSTAT, NONE),
    tries(POLL, [0, 1, 0]),
    needs(MMAP, [0, 0, READ_WRITE]),
    needs(MPROTECT, [0, 0, READ_WRITE]),
    needs(MPROTECT, [0, 0, READ_EXECUTE]),
    needs(MUNMAP, NONE),
    needs(RT_SIGPROCMASK, [2, 0, 0]),
    // PROCMAP_QUERY, of a process's maps.
    tries(IOCTL, [0, 0xc068_6611, 0]),
    needs(PREAD64, NONE),
    needs(PWRITE64, NONE),
    tries(ACCESS, [0, 4, 0]),
    tries(MADVISE, [0, 0, 15]),
    tries(MADVISE, [0, 0, 16]),
    needs(MADVISE, [0, 0, 18]),
    needs(GETPID, NONE),
    needs(SOCKET, [1, 5 | 0x80000, 0]),
    needs(CONNECT, NONE),
    tries(SENDTO, NONE),
    needs(SENDMSG, NONE),
    tries(RECVMSG, NONE),
    tries(SETSOCKOPT, [0, 1, 21]),
    needs(FCNTL, [0, 1033, 7]),
    needs(FTRUNCATE, NONE),
    tries(READLINK, NONE),
    tries(GETRUSAGE, NONE),
    tries(GETUID, NONE),
    tries(GETGID, NONE),
    tries(GETPPID, NONE),
    THREAD_ID,
    needs(FUTEX, [0, 0, 0]),
    needs(FUTEX, [0, 1, 0]),
    needs(CLOCK_GETTIME, [1, 0, 0]),
    tries(CLOCK_GETTIME, [0, 0, 0]),
    needs(OPENAT, [AT_FDCWD, 0, 0x80000]),
    // By the loader, before it maps a library.
    needs(NEWFSTATAT, NONE),
    tries(PRLIMIT64, NONE),
    tries(PROCESS_VM_READV, NONE),
    needs(MEMFD_CREATE, [0, 3, 0]),
];

/// The one that tells a thread its number.
pub const THREAD_ID: Call = needs(GETTID, NONE);

/// Those of a look into a file.
pub const CALLS_OF_A_LOOK: [Call; 3] =
    [needs(OPENAT, [AT_FDCWD, 0, 0x80000]), needs(READ, NONE), needs(CLOSE, NONE)];

const NEWFSTATAT: usize = 262;
const NONE: [usize; 3] = [0; 3];
const READ_WRITE: usize = 1 | 2;
const READ_EXECUTE: usize = 1 | 4;
const AT_FDCWD: usize = -100isize as usize;
