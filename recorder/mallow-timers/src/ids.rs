//! The numbers of this process and its threads as mallow has them: in a pid namespace of its own a process has other numbers for itself.
//!
//! Who can open the memory by its path sees mallow's `/proc`, which says under which number it knows whoever asks.

use core::sync::atomic::{AtomicBool, Ordering};
use mallow_recorder::sys;

/// This process has other numbers for itself. Children have too.
static DIFFER: AtomicBool = AtomicBool::new(false);

/// Finds out whether numbers differ; before the memory is used.
pub(crate) fn find_out() {
    let is_other = seen(c"/proc/self").is_some_and(|pid| pid != sys::getpid());
    DIFFER.store(is_other, Ordering::Relaxed);
}

/// This process.
pub(crate) fn pid() -> u32 {
    let seen = if DIFFER.load(Ordering::Relaxed) { seen(c"/proc/self") } else { None };
    seen.unwrap_or_else(sys::getpid)
}

/// The calling thread.
pub(crate) fn tid() -> u32 {
    let seen = if DIFFER.load(Ordering::Relaxed) { seen(c"/proc/thread-self") } else { None };
    seen.unwrap_or_else(sys::gettid)
}

/// The number at the end of what a link says: `12`, `12/task/13`. Makes one system call, also in a signal's handler.
fn seen(link: &core::ffi::CStr) -> Option<u32> {
    let mut text = [0u8; 64];
    // SAFETY: there is room for so many bytes.
    let length = unsafe { sys::readlink(link, text.as_mut_ptr(), text.len()) };
    let text = text.get(..usize::try_from(length).ok()?)?;
    let digits = text.rsplit(|byte| *byte == b'/').next()?;
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    is_number.then(|| {
        digits.iter().fold(0, |sum: u32, digit| sum.wrapping_mul(10).wrapping_add(u32::from(digit - b'0')))
    })
}
