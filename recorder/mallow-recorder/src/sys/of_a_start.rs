//! The calls that a recording begins with in a program that is started, and those that come before its start is noted.

use super::sockets::{CONNECT, POLL, RECVMSG, SENDMSG, SENDTO, SETSOCKOPT, SOCKET};
use super::*;

/// Their numbers, and the first arguments by which somebody might decide: flags and commands. Pointers, lengths and descriptors are 0.
pub const CALLS_OF_A_START: [(usize, [usize; 3]); 40] = [
    (READ, NONE),
    (CLOSE, NONE),
    (STAT, NONE),
    (FSTAT, NONE),
    (POLL, [0, 1, 0]),
    (MMAP, [0, 0, READ_WRITE]),
    (MPROTECT, [0, 0, READ_WRITE]),
    (MPROTECT, [0, 0, READ_EXECUTE]),
    (MUNMAP, NONE),
    (RT_SIGPROCMASK, [2, 0, 0]),
    // PROCMAP_QUERY, of a process's maps.
    (IOCTL, [0, 0xc068_6611, 0]),
    (PREAD64, NONE),
    (PWRITE64, NONE),
    (ACCESS, [0, 4, 0]),
    (MADVISE, [0, 0, 15]),
    (MADVISE, [0, 0, 16]),
    (MADVISE, [0, 0, 18]),
    (GETPID, NONE),
    (SOCKET, [1, 5 | 0x80000, 0]),
    (CONNECT, NONE),
    (SENDTO, NONE),
    (SENDMSG, NONE),
    (RECVMSG, NONE),
    (SETSOCKOPT, [0, 1, 21]),
    (FCNTL, [0, 1033, 7]),
    (FTRUNCATE, NONE),
    (READLINK, NONE),
    (GETRUSAGE, NONE),
    (GETUID, NONE),
    (GETGID, NONE),
    (GETPPID, NONE),
    THREAD_ID,
    (FUTEX, [0, 0, 0]),
    (FUTEX, [0, 1, 0]),
    (CLOCK_GETTIME, [1, 0, 0]),
    (OPENAT, [AT_FDCWD, 0, 0x80000]),
    // By the loader, before it maps a library.
    (NEWFSTATAT, NONE),
    (PRLIMIT64, NONE),
    (PROCESS_VM_READV, NONE),
    (MEMFD_CREATE, [0, 3, 0]),
];

/// The one that tells a thread its number.
pub const THREAD_ID: (usize, [usize; 3]) = (GETTID, NONE);

const NEWFSTATAT: usize = 262;
const NONE: [usize; 3] = [0; 3];
const READ_WRITE: usize = 1 | 2;
const READ_EXECUTE: usize = 1 | 4;
const AT_FDCWD: usize = -100isize as usize;
