//! Limits of the process's resources.

use super::{PRLIMIT64, call};
use core::sync::atomic::{AtomicU32, Ordering};

/// As `RLIMIT_AS`.
pub const LIMIT_ADDRESSES: u32 = 9;
/// As `RLIMIT_DATA`.
pub const LIMIT_DATA: u32 = 2;

/// Limits that the program has set for itself, to which what is ours was added ([`crate::own_limits`]): a bit for each resource.
static LIMITED: AtomicU32 = AtomicU32::new(0);

/// Notes that it has set one.
pub fn note_limited(resource: u32) {
    LIMITED.fetch_or(1 << (resource & 31), Ordering::Relaxed);
}

/// Returns whether it has set any.
pub(super) fn is_limited() -> bool {
    LIMITED.load(Ordering::Relaxed) != 0
}

/// Forgets that it has.
pub(super) fn forget_limited() {
    LIMITED.store(0, Ordering::Relaxed);
}

/// Has so much more memory fit in such limits, as far as the hard ones allow.
pub(super) fn make_room(bytes: usize, is_private: bool) {
    let limited = LIMITED.load(Ordering::Relaxed);
    for resource in [LIMIT_ADDRESSES, LIMIT_DATA] {
        let counts = limited >> resource & 1 != 0 && (is_private || resource == LIMIT_ADDRESSES);
        if let Some([soft, hard]) = limits(resource).filter(|_| counts) {
            set_limits(resource, [soft.saturating_add(bytes as u64).min(hard), hard]);
        }
    }
}

/// The soft limit of the main thread's stack in bytes.
pub fn stack_limit_bytes() -> usize {
    const RLIMIT_STACK: usize = 3;
    soft_limit(RLIMIT_STACK).unwrap_or(0)
}

/// The longest file that this process may make, in bytes.
pub fn file_limit_bytes() -> usize {
    const RLIMIT_FSIZE: usize = 1;
    soft_limit(RLIMIT_FSIZE).unwrap_or(usize::MAX)
}

/// Returns how much address space this process may have, in bytes.
pub fn address_limit_bytes() -> usize {
    soft_limit(LIMIT_ADDRESSES as usize).unwrap_or(usize::MAX)
}

/// Returns how much private memory that it can write this process may have, in bytes.
pub fn data_limit_bytes() -> usize {
    soft_limit(LIMIT_DATA as usize).unwrap_or(usize::MAX)
}

/// Returns how many files this process may have open at once.
pub fn open_files_max() -> usize {
    const RLIMIT_NOFILE: usize = 7;
    soft_limit(RLIMIT_NOFILE).unwrap_or(usize::MAX)
}

pub(super) fn soft_limit(resource: usize) -> Option<usize> {
    limits(resource as u32).map(|[soft, _]| soft as usize)
}

/// The soft limit and the hard one of a resource, in its unit.
pub fn limits(resource: u32) -> Option<[u64; 2]> {
    let mut limits = [0u64; 2];
    // SAFETY: reads the limits of this process into 16 bytes of ours.
    let answer = unsafe { call(PRLIMIT64, [0, resource as usize, 0, limits.as_mut_ptr() as usize, 0, 0]) };
    (answer >= 0).then_some(limits)
}

/// Sets them.
pub fn set_limits(resource: u32, limits: [u64; 2]) -> isize {
    // SAFETY: reads 16 bytes of ours.
    unsafe { call(PRLIMIT64, [0, resource as usize, limits.as_ptr() as usize, 0, 0, 0]) }
}
