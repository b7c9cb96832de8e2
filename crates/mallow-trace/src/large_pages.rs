//! Large pages for memory of many megabytes that is wanted at random, as the live blocks of an aggregator are, whether they are
//! written or read.

/// Asks for them where memory is untouched; see [`mallow_profile::MemoryAdvice`].
pub fn want_large_pages(start: *mut u8, bytes: usize) {
    const WORTH_BYTES: usize = 4 << 20;
    const PAGE_BYTES: usize = 4096;
    if bytes < WORTH_BYTES {
        return;
    }
    let end = (start as usize + bytes) / PAGE_BYTES * PAGE_BYTES;
    let start = (start as usize).next_multiple_of(PAGE_BYTES);
    // SAFETY: advice on whole pages changes how they are mapped, not what they hold.
    let _ = unsafe { rustix::mm::madvise(start as *mut _, end - start, rustix::mm::Advice::LinuxHugepage) };
}
