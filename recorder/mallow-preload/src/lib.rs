//! The library that is preloaded into the profiled program: hooks for the malloc family, process exit and `dlclose`.
//!
//! Every exported function begins with a few instructions that pass its caller's stack pointer and frame
//! pointer to the function that does the work. So the caller's stack can be found exactly, and no frame
//! of ours is on it. The work is always the same: ask `mallow_recorder::thread::enter` whether to record, call
//! the real function, write the record.
//!
//! The exports are listed in `exports.txt`; nothing else may be visible. The library needs no other
//! library.

#![no_std]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

/// The malloc family and the operators, which are exported with the rest.
pub use mallow_family as family;

use core::arch::asm;
use mallow_recorder::session::{self, Strings};
use mallow_recorder::sys;
use mallow_wire::shared::PAGE_BYTES;

pub mod deep_binding;
pub mod descriptors;
pub mod exec_lists;
pub mod exits;
mod helper_thread;
mod interposed;
mod linked;
pub mod locking;
pub mod looked_up;
pub mod mappings;
pub mod marks;
pub mod own_allocators;
pub mod own_limits;
mod python;
pub mod sandbox;
pub mod start_main;
pub mod starts;
pub mod static_objects;
pub mod static_start;

/// Asked for by the compiler. Nothing panics: `cargo xtask recorder` finds out if anything could.
#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    sys::exit_group(134)
}

/// Runs when the loader has set the library up, before the program's own code, and on glibc before that of all other libraries
/// (`build.rs`).
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn(usize, usize, Strings) = start;

/// glibc's loader passes what `main` will get, musl's nothing: but then the environment is known already.
extern "C" fn start(_: usize, _: usize, environment: Strings) {
    keep_tables_small();
    session::note_environment(environment);
    mallow_recorder::thread::note_library(start as *const () as usize);
    linked::install();
    exits::watch();
    starts::find_real();
    own_limits::find_real();
    sandbox::find_real();
    looked_up::find_real();
    deep_binding::find_real();
    mallow_recorder::modules::note_executable();
    mallow_recorder::bootstrap::note_malloc(start as *const () as usize);
    mallow_recorder::starts::note_preloads(start as *const () as usize);
    mallow_recorder::script::note_loaded();
    mallow_recorder::bootstrap::start();
    mappings::install();
    python::install();
}

/// The recorder's tables are megabytes of this library, of which a process touches some pages.
fn keep_tables_small() {
    let (start, end): (usize, usize);
    // SAFETY: two addresses, which the linker defines in each library. They are this one's where they are hidden.
    unsafe {
        asm!(
            ".hidden __bss_start",
            ".hidden _end",
            "lea {}, [rip + __bss_start]",
            "lea {}, [rip + _end]",
            out(reg) start,
            out(reg) end,
            options(pure, nomem, nostack, preserves_flags)
        );
    }
    // What lies before its first whole page is on one with data from the file.
    let start = start.next_multiple_of(PAGE_BYTES);
    // SAFETY: pages that hold nothing but memory of this library.
    unsafe { sys::keep_small(start as *mut u8, end.saturating_sub(start), sys::Sharing::Private) };
}
