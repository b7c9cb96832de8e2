//! Returns the columns of a large heap to the system when they are freed.
//!
//! glibc maps large blocks separately at first, but raises the threshold each time such a block is freed, up to 32
//! MiB. From then on the columns of a snapshot, which have twelve megabytes for three million objects, are in one
//! arena, and memory that is freed within it stays. A threshold that was set explicitly is never raised.

/// Blocks of this size and more are mapped separately. Smaller ones are reused at once: pieces of a file that are
/// read in parallel are just below it, and mapping each again would cost a Ruby dump a sixth more CPU time.
#[cfg(target_env = "gnu")]
const MAPPED_BYTES_MIN: i32 = 4 << 20;

/// Must be called before anything large is read.
#[cfg(target_env = "gnu")]
pub(super) fn return_to_system() {
    /// `M_MMAP_THRESHOLD` of `malloc.h`.
    const M_MMAP_THRESHOLD: i32 = -3;
    unsafe extern "C" {
        fn mallopt(parameter: i32, value: i32) -> i32;
    }
    // SAFETY: it sets a number of the allocator under the allocator's own lock, at any time; an allocator in glibc's
    // place has its own function, or refuses.
    let _ = unsafe { mallopt(M_MMAP_THRESHOLD, MAPPED_BYTES_MIN) };
}

/// Other C libraries return freed memory by their own rules.
#[cfg(not(target_env = "gnu"))]
pub(super) fn return_to_system() {}
