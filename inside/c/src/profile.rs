//! The profile under way.

use super::family::{caught, is_recorded_from_outside, own_work};
use super::stats::{DONE, MallowStats, NOT_DONE, put};
use core::ffi::{CStr, c_char, c_int};
use mallow_alloc::{Format, Profile, Stats, builder};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Its number, 0 without one. No lock, which a forked child might find held.
static UNDER_WAY: AtomicU64 = AtomicU64::new(0);

/// As the header says.
///
/// # Safety
/// `path` is null or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mallow_profile_begin(path: *const c_char) -> c_int {
    // SAFETY: by contract.
    unsafe { begin(path, Format::Mallow) }
}

/// As the header says.
///
/// # Safety
/// As [`mallow_profile_begin`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mallow_profile_begin_dhat(path: *const c_char) -> c_int {
    // SAFETY: by contract.
    unsafe { begin(path, Format::Dhat) }
}

/// As the header says.
///
/// # Safety
/// `stats` is null or a place for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mallow_profile_stats(stats: *mut MallowStats) -> c_int {
    // SAFETY: by contract.
    unsafe { put(sums(), stats) }
}

/// As the header says.
#[unsafe(no_mangle)]
pub extern "C" fn mallow_profile_end() -> c_int {
    // In a forked child it may be its parent's, which lives on there.
    let is_own = sums().is_some();
    let number = UNDER_WAY.swap(0, Ordering::Relaxed);
    if number == 0 || !is_own {
        return NOT_DONE;
    }
    match caught(|| drop(Profile::from_raw(number))) {
        Some(()) => DONE,
        None => NOT_DONE,
    }
}

unsafe fn begin(path: *const c_char, format: Format) -> c_int {
    if path.is_null() {
        own_work(|| eprintln!("mallow: a profile needs the name of a file"));
        return NOT_DONE;
    }
    // SAFETY: by contract.
    let path = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes()));
    if is_recorded_from_outside() {
        outside(path);
        return NOT_DONE;
    }
    match caught(|| builder(path).format(format).begin()) {
        Some(Ok(profile)) => {
            UNDER_WAY.store(profile.into_raw(), Ordering::Relaxed);
            DONE
        }
        Some(Err(error)) => {
            own_work(|| {
                eprintln!("mallow: {error}");
                drop(error);
            });
            NOT_DONE
        }
        None => NOT_DONE,
    }
}

fn sums() -> Option<Stats> {
    let number = UNDER_WAY.load(Ordering::Relaxed);
    if number == 0 {
        return None;
    }
    caught(|| {
        let profile = Profile::from_raw(number);
        let sums = profile.stats();
        profile.into_raw();
        sums
    })?
}

/// Allocates nothing, which would be in the recording from outside.
fn outside(path: &Path) {
    eprintln!(
        "mallow: the program runs under mallow, which records it from outside; '{}' is not written",
        path.display()
    );
}
