//! Parts of the program whose allocations are counted.

use super::family::{caught, is_recorded_from_outside, own_work};
use super::stats::{DONE, MallowStats, NOT_DONE, put};
use core::ffi::{CStr, c_char, c_int, c_void};
use mallow_alloc::{Region, region};
use std::ptr::null_mut;

/// As the header says.
#[unsafe(no_mangle)]
pub extern "C" fn mallow_scope_begin() -> *mut Region {
    is_recorded_from_outside();
    match caught(region) {
        Some(Ok(region)) => own_work(|| Box::into_raw(Box::new(region))).unwrap_or(null_mut()),
        Some(Err(error)) => {
            own_work(|| {
                eprintln!("mallow: {error}");
                drop(error);
            });
            null_mut()
        }
        None => null_mut(),
    }
}

/// As the header says.
///
/// # Safety
/// `scope` is null or one that has not ended; `stats` is null or a place for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mallow_scope_stats(scope: *const Region, stats: *mut MallowStats) -> c_int {
    // SAFETY: by contract.
    unsafe { put(scope.as_ref().and_then(|scope| caught(|| scope.counted())?), stats) }
}

/// As the header says.
///
/// # Safety
/// `scope` is null or one that has not ended; `limit` is null or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mallow_scope_check(scope: *const Region, limit: *const c_char) -> c_int {
    // SAFETY: by contract.
    let (scope, limit) = unsafe { (scope.as_ref(), (!limit.is_null()).then(|| CStr::from_ptr(limit))) };
    let Some((scope, limit)) = scope.zip(limit.and_then(|limit| limit.to_str().ok())) else {
        own_work(|| eprintln!("mallow: a check needs a scope and a limit"));
        return NOT_DONE;
    };
    match caught(|| scope.check(&[limit])) {
        Some(Ok(())) => DONE,
        Some(Err(broken)) => {
            own_work(|| {
                eprintln!("mallow: {broken}");
                drop(broken);
            });
            NOT_DONE
        }
        None => NOT_DONE,
    }
}

/// As the header says.
///
/// # Safety
/// `scope` is null or one that has not ended; `work` may be called with `context`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn mallow_scope_run(
    scope: *const Region,
    work: unsafe extern "C-unwind" fn(*mut c_void),
    context: *mut c_void,
) {
    // SAFETY: by contract.
    unsafe {
        match scope.as_ref() {
            Some(scope) => scope.share().run(|| work(context)),
            None => work(context),
        }
    }
}

/// As the header says.
///
/// # Safety
/// `scope` is null or one that has not ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mallow_scope_end(scope: *mut Region) {
    if scope.is_null() {
        return;
    }
    // SAFETY: it was a box, and nobody uses it any more.
    own_work(|| drop(unsafe { Box::from_raw(scope) }));
}
