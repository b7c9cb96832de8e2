//! Columns of a large heap go back to the system when they are given up.
//!
//! glibc maps large blocks on their own at first, but raises the limit each time such a block is freed, up to 32 MiB. From then on a snapshot's columns,
//! which have twelve megabytes for three million objects, lie in one area, and what is freed within it stays. A limit that was set is never raised.

/// Blocks of this size and more are mapped on their own. Smaller ones are taken again at once: pieces of a file that are read at the same time are just
/// below it, and mapping each anew would take a Ruby dump a sixth more of the processors.
#[cfg(target_env = "gnu")]
const MAPPED_BYTES_MIN: i32 = 4 << 20;

/// To be called before anything large is read.
#[cfg(target_env = "gnu")]
pub(super) fn return_to_system() {
    /// `M_MMAP_THRESHOLD` of `malloc.h`.
    const M_MMAP_THRESHOLD: i32 = -3;
    unsafe extern "C" {
        fn mallopt(parameter: i32, value: i32) -> i32;
    }
    // SAFETY: it changes a number of the allocator under its own lock, at any time; an allocator in glibc's place has its own function, or refuses.
    let _ = unsafe { mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES_MIN) };
}

/// Other C libraries return what is freed as they do.
#[cfg(not(target_env = "gnu"))]
pub(super) fn return_to_system() {}
