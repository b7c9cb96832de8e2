//! Addresses of the real functions behind our hooks, each resolved once.
//!
//! A function that no other object defines is reported as missing: a program that calls it through us would
//! not have linked without us.

use crate::elf;
use crate::named;
use crate::trampolines;
use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A function of the next library. Its address is the first field, where assembly reads it.
#[repr(C)]
#[derive(Debug)]
pub struct Real {
    address: AtomicPtr<()>,
    /// What [`Real::inner`] gives, once it is known.
    inner: AtomicPtr<()>,
    name: &'static CStr,
}

impl Real {
    /// The next definition of `name`.
    pub const fn named(name: &'static CStr) -> Real {
        let inner = AtomicPtr::new(core::ptr::null_mut());
        Real { address: AtomicPtr::new(core::ptr::null_mut()), inner, name }
    }

    /// One that the linker knows.
    pub const fn linked(function: unsafe extern "C" fn()) -> Real {
        let function = function as *mut ();
        Real { address: AtomicPtr::new(function), inner: AtomicPtr::new(function), name: c"" }
    }

    /// Its address, or 0 if no object defines it.
    #[inline(always)]
    pub fn address(&self) -> usize {
        match self.address.load(Ordering::Relaxed) as usize {
            0 => self.look_up(),
            address => address,
        }
    }

    /// Where a call goes on that is recorded already: its address; where that begins with a jump to one of our hooks, which would look at the
    /// same call again, the instructions that were there before.
    #[inline(always)]
    pub fn inner(&'static self) -> usize {
        match self.inner.load(Ordering::Relaxed) as usize {
            0 => self.look_up_inner(),
            inner => inner,
        }
    }

    #[cold]
    #[inline(never)]
    fn look_up_inner(&'static self) -> usize {
        let address = self.address();
        let moved = || trampolines::moved(address);
        if address == 0 {
            return 0;
        }
        let Some(inner) = moved() else {
            // Noted first: a patch that comes in between is then seen here, or forgets what is stored here. One for which there is no room stays with its
            // address, and its calls are looked at twice and counted once.
            trampolines::forget_when_patched(&self.inner);
            self.inner.store(address as *mut (), Ordering::SeqCst);
            return moved()
                .inspect(|inner| self.inner.store(*inner as *mut (), Ordering::SeqCst))
                .unwrap_or(address);
        };
        self.inner.store(inner as *mut (), Ordering::SeqCst);
        inner
    }

    #[cold]
    #[inline(never)]
    fn look_up(&self) -> usize {
        let own = core::ptr::from_ref(self) as usize;
        let found = named::find(self.name.to_bytes()).or_else(|| elf::next_definition(self.name, own));
        // A library that is loaded later may bring the function, so "missing" is not kept.
        if let Some(address) = found {
            self.address.store(address as *mut (), Ordering::Relaxed);
        }
        found.unwrap_or(0)
    }
}

/// Exports a function that passes its first four arguments and its caller's registers to `$work`, and then jumps to
/// the address that `$work` returns.
#[macro_export]
macro_rules! export_before {
    ($name:ident => $work:ident) => {
        #[doc = concat!("`", stringify!($name), "`, passed on.")]
        ///
        /// # Safety
        /// As the function that it stands for.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            ::core::arch::naked_asm!(
                ".cfi_startproc",
                "push rdi", ".cfi_adjust_cfa_offset 8",
                "push rsi", ".cfi_adjust_cfa_offset 8",
                "push rdx", ".cfi_adjust_cfa_offset 8",
                "push rcx", ".cfi_adjust_cfa_offset 8",
                "push r8", ".cfi_adjust_cfa_offset 8",
                "push r9", ".cfi_adjust_cfa_offset 8",
                // How many vector registers hold arguments.
                "push rax", ".cfi_adjust_cfa_offset 8",
                "lea r8, [rsp + 56]", "mov r9, rbp",
                "call {work}",
                "mov r11, rax",
                "pop rax", ".cfi_adjust_cfa_offset -8",
                "pop r9", ".cfi_adjust_cfa_offset -8",
                "pop r8", ".cfi_adjust_cfa_offset -8",
                "pop rcx", ".cfi_adjust_cfa_offset -8",
                "pop rdx", ".cfi_adjust_cfa_offset -8",
                "pop rsi", ".cfi_adjust_cfa_offset -8",
                "pop rdi", ".cfi_adjust_cfa_offset -8",
                "jmp r11",
                ".cfi_endproc",
                work = sym $work
            )
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trampolines::{Patched, tests::patched};

    extern "C" fn function() {}

    /// Counted calls do not go through the hook of a function that was patched, also where it was called before.
    #[test]
    fn a_recorded_call_goes_on_behind_the_jump_of_a_patch() {
        static MALLOC: Real = Real {
            address: AtomicPtr::new(function as *mut ()),
            inner: AtomicPtr::new(core::ptr::null_mut()),
            name: c"malloc",
        };
        let entry = function as *const () as usize;
        assert_eq!([MALLOC.inner(), MALLOC.inner()], [entry; 2]);
        let description: &'static mut Patched =
            Box::leak(Box::new(Patched { real: 0x4711, entry, ..patched() }));
        // SAFETY: the description stays; the slots are never entered.
        unsafe { trampolines::note(0x7000_0000_0000, description, 1) };
        assert_eq!([MALLOC.inner(), MALLOC.address()], [0x4711, entry]);
    }
}
