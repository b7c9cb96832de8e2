//! Asking for memory before it is needed. The processor can fetch for many events at once, but cannot know what later events will look up.

use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Asks for the cache line at a place, which need not exist.
#[inline(always)]
pub(crate) fn prefetch<T>(place: *const T) {
    // SAFETY: a prefetch is a hint and faults on no address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
}
