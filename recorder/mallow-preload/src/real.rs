//! The functions that we stand in front of, found once each.
//!
//! A function that no other object defines is reported as missing: a program that calls it through us would
//! not have linked without us.

use core::ffi::CStr;
use core::sync::atomic::{AtomicUsize, Ordering};
use mallow_recorder::elf;

/// A function of the next library.
#[derive(Debug)]
pub(crate) struct Real {
    name: &'static CStr,
    address: AtomicUsize,
}

impl Real {
    /// The next definition of `name`.
    pub(crate) const fn named(name: &'static CStr) -> Real {
        Real { name, address: AtomicUsize::new(0) }
    }

    /// Its address, or 0 when nobody defines it.
    #[inline(always)]
    pub(crate) fn address(&self) -> usize {
        match self.address.load(Ordering::Relaxed) {
            0 => self.look_up(),
            address => address,
        }
    }

    #[cold]
    #[inline(never)]
    fn look_up(&self) -> usize {
        let found = elf::next_definition(self.name, core::ptr::from_ref(self) as usize);
        // A library that is loaded later may bring the function, so "missing" is not kept.
        if let Some(address) = found {
            self.address.store(address, Ordering::Relaxed);
        }
        found.unwrap_or(0)
    }
}
