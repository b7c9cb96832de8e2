//! Functions of a static executable by their names, which no loader knows: mallow has read them in the file before the start.
//!
//! A function that has a patch is found where its first instructions went, so that who asks for the function behind ours gets that.

use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use mallow_wire::patches::{NAME_BYTES, NamedFunction};

/// A function and where it is called.
#[derive(Clone, Copy, Debug)]
pub struct Named {
    name: [u8; NAME_BYTES],
    address: usize,
}

static NAMED: AtomicPtr<Named> = AtomicPtr::new(core::ptr::null_mut());
static COUNT: AtomicUsize = AtomicUsize::new(0);

impl Named {
    /// The function as it is called at `address`.
    pub fn new(function: &NamedFunction, address: usize) -> Named {
        Named { name: function.name, address }
    }
}

/// Makes functions known.
///
/// # Safety
/// `named` points at so many, which stay there.
pub unsafe fn note(named: *mut Named, count: usize) {
    NAMED.store(named, Ordering::Relaxed);
    COUNT.store(count, Ordering::Release);
}

/// Returns the address of the executable's function of this name; `None` where the loader resolves it, and for other
/// names.
pub fn find(name: &[u8]) -> Option<usize> {
    let count = COUNT.load(Ordering::Acquire);
    if count == 0 {
        return None;
    }
    // SAFETY: so many were noted.
    let all = unsafe { core::slice::from_raw_parts(NAMED.load(Ordering::Relaxed), count) };
    all.iter().find(|named| is_called(&named.name, name)).map(|named| named.address)
}

/// Returns whether a name that ends with a zero is this one.
pub fn is_called(padded: &[u8; NAME_BYTES], name: &[u8]) -> bool {
    padded.strip_prefix(name).is_some_and(|rest| rest.first() == Some(&0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_names_match_as_a_whole() {
        let mut padded = [0; NAME_BYTES];
        padded[..5].copy_from_slice(b"fopen");
        assert!(is_called(&padded, b"fopen"));
        assert!(!is_called(&padded, b"fope") && !is_called(&padded, b"fopen64"));
        assert!(!is_called(&[b'a'; NAME_BYTES], &[b'a'; NAME_BYTES]), "it does not end");
    }
}
