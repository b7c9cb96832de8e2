//! Addresses of the real functions behind our hooks, each resolved once.
//!
//! A function that no other object defines is reported as missing: a program that calls it through us would
//! not have linked without us.

use crate::elf;
use crate::named;
use core::ffi::CStr;
use core::sync::atomic::{AtomicPtr, Ordering};

/// A function of the next library. Its address is the first field, where assembly reads it.
#[repr(C)]
#[derive(Debug)]
pub struct Real {
    address: AtomicPtr<()>,
    name: &'static CStr,
}

impl Real {
    /// The next definition of `name`.
    pub const fn named(name: &'static CStr) -> Real {
        Real { address: AtomicPtr::new(core::ptr::null_mut()), name }
    }

    /// One that the linker knows.
    pub const fn linked(function: unsafe extern "C" fn()) -> Real {
        Real { address: AtomicPtr::new(function as *mut ()), name: c"" }
    }

    /// Its address, or 0 if no object defines it.
    #[inline(always)]
    pub fn address(&self) -> usize {
        match self.address.load(Ordering::Relaxed) as usize {
            0 => self.look_up(),
            address => address,
        }
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
