//! Files and their descriptors.

use super::{
    ACCESS, CLOSE, FCNTL, FSTAT, FTRUNCATE, GETGID, GETUID, IOCTL, MEMFD_CREATE, OPENAT, PREAD64, PWRITE64,
    READ, READLINK, STAT, call,
};

/// A file in memory that closes on exec, and whose length can be made to stay.
pub fn memfd_create(name: &core::ffi::CStr) -> isize {
    const CLOEXEC: usize = 1;
    const ALLOW_SEALING: usize = 2;
    // SAFETY: the name is a valid string for the call's duration.
    unsafe { call(MEMFD_CREATE, [name.as_ptr() as usize, CLOEXEC | ALLOW_SEALING, 0, 0, 0, 0]) }
}

/// Seals the length of a file in memory, so that it cannot be truncated under a mapping of it.
pub fn seal_length(fd: i32) -> bool {
    const ADD_SEALS: usize = 1033;
    const SEAL: usize = 1;
    const SHRINK: usize = 2;
    const GROW: usize = 4;
    // SAFETY: touches a file of ours only.
    unsafe { call(FCNTL, [fd as usize, ADD_SEALS, SEAL | SHRINK | GROW, 0, 0, 0]) == 0 }
}

/// Sets a file's length.
pub fn ftruncate(fd: i32, bytes: usize) -> isize {
    // SAFETY: touches a file of ours only.
    unsafe { call(FTRUNCATE, [fd as usize, bytes, 0, 0, 0, 0]) }
}

/// Closes a descriptor of ours.
pub fn close(fd: i32) {
    // SAFETY: the caller opened it.
    unsafe { call(CLOSE, [fd as usize, 0, 0, 0, 0, 0]) };
}

/// Opens a file for reading; it closes on exec.
pub fn open_read(path: &core::ffi::CStr) -> isize {
    const AT_FDCWD: usize = -100isize as usize;
    const CLOEXEC: usize = 0x80000;
    // SAFETY: the path is a valid string for the call's duration.
    unsafe { call(OPENAT, [AT_FDCWD, path.as_ptr() as usize, CLOEXEC, 0, 0, 0]) }
}

/// Reads from a descriptor.
pub fn read(fd: i32, into: &mut [u8]) -> isize {
    // SAFETY: the kernel writes at most the slice's length into it.
    unsafe { call(READ, [fd as usize, into.as_mut_ptr() as usize, into.len(), 0, 0, 0]) }
}

/// Reads from an offset on.
pub fn read_at(fd: i32, offset: u64, into: &mut [u8]) -> isize {
    // SAFETY: the kernel writes at most the slice's length into it.
    unsafe { call(PREAD64, [fd as usize, into.as_mut_ptr() as usize, into.len(), offset as usize, 0, 0]) }
}

/// Writes at an offset.
///
/// # Safety
/// What the file stands for, such as this process's memory, may be changed there.
pub unsafe fn write_at(fd: i32, offset: u64, bytes: &[u8]) -> isize {
    // SAFETY: the kernel only reads the slice; by contract.
    unsafe { call(PWRITE64, [fd as usize, bytes.as_ptr() as usize, bytes.len(), offset as usize, 0, 0]) }
}

/// Opens this process's own memory as a file that can be written; it closes on exec.
pub fn open_own_memory() -> isize {
    const AT_FDCWD: usize = -100isize as usize;
    const READ_WRITE_CLOEXEC: usize = 2 | 0x80000;
    let path = c"/proc/self/mem";
    // SAFETY: the path is a valid string for the call's duration.
    unsafe { call(OPENAT, [AT_FDCWD, path.as_ptr() as usize, READ_WRITE_CLOEXEC, 0, 0, 0]) }
}

/// Returns whether a file is there and may be executed.
pub fn is_executable(path: &core::ffi::CStr) -> bool {
    const EXECUTE: usize = 1;
    // SAFETY: the path is a valid string for the call's duration.
    unsafe { call(ACCESS, [path.as_ptr() as usize, EXECUTE, 0, 0, 0, 0]) == 0 }
}

/// Returns whether a file is there and may be read. It is opened, because `access` does not know what Landlock forbids.
pub fn is_readable_file(path: &core::ffi::CStr) -> bool {
    let file = open_read(path);
    if file >= 0 {
        close(file as i32);
    }
    file >= 0
}

/// `struct stat`: 144 bytes, of which the number (word 1), mode and user (word 3), and group (word 4) are read.
type Stat = [u64; 18];

/// Returns how many threads this process has; `None` if the kernel does not say.
pub fn thread_count() -> Option<u64> {
    let mut stat: Stat = [0; 18];
    let path = c"/proc/self/task";
    // SAFETY: the path is a valid string; the kernel writes a `struct stat`.
    let answer = unsafe { call(STAT, [path.as_ptr() as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    // A folder has a link for itself, one from above, and one for each folder in it.
    (answer == 0).then(|| stat[2].saturating_sub(2))
}

/// The number of a file.
pub fn file_number(path: &core::ffi::CStr) -> Option<u64> {
    let mut stat: Stat = [0; 18];
    // SAFETY: the path is a valid string; the kernel writes a `struct stat`.
    let answer = unsafe { call(STAT, [path.as_ptr() as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    (answer == 0).then_some(stat[1])
}

/// Returns whether executing an open file changes the user or group (setuid, setgid).
pub fn gives_rights(fd: i32) -> bool {
    const SETUID: u64 = 0o4000;
    const SETGID: u64 = 0o2000;
    let mut stat: Stat = [0; 18];
    // SAFETY: the kernel writes a `struct stat`; the others take no arguments.
    let (answer, user, group) = unsafe {
        let answer = call(FSTAT, [fd as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]);
        (answer, call(GETUID, [0; 6]) as u64, call(GETGID, [0; 6]) as u64)
    };
    let (mode, owner, owners) = (stat[3] & 0xffff_ffff, stat[3] >> 32, stat[4] & 0xffff_ffff);
    answer == 0 && (mode & SETUID != 0 && owner != user || mode & SETGID != 0 && owners != group)
}

/// Reads a symbolic link.
///
/// # Safety
/// The kernel may write `bytes` bytes at `at`.
pub unsafe fn readlink(path: &core::ffi::CStr, at: *mut u8, bytes: usize) -> isize {
    // SAFETY: by contract.
    unsafe { call(READLINK, [path.as_ptr() as usize, at as usize, bytes, 0, 0, 0]) }
}

/// An ioctl whose argument is a structure that the kernel reads and writes.
///
/// # Safety
/// `argument` has the type that `request` expects.
pub unsafe fn ioctl<T>(fd: i32, request: usize, argument: &mut T) -> isize {
    // SAFETY: by contract.
    unsafe { call(IOCTL, [fd as usize, request, core::ptr::from_mut(argument) as usize, 0, 0, 0]) }
}
