//! What a child and its workers leave behind: files of whoever started them, and what a program does at its end.

/// Closes all files but the first three: what was not made to be closed when another program starts, and what a worker has from the child.
pub(crate) fn close_all_but_standard() {
    const KNOWN_FILES_MAX: i32 = 1024;
    let first = 3;
    // SAFETY: nothing owns them: in the child nothing was opened yet, and a worker uses none of the child's again.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) != 0 {
            // Before Linux 5.9. There are as many as workers at once, two for each.
            (first..KNOWN_FILES_MAX).for_each(|file| _ = libc::close(file));
        }
    }
}

/// Ends this process and nothing else: what a program does at its end is not for its child.
pub(crate) fn exit(code: i32) -> ! {
    // SAFETY: it does not return, and runs nothing of ours.
    unsafe { libc::_exit(code) }
}
