//! The library that is preloaded where the kernel refuses perf events: a timer for each thread, on its time on processors.
//!
//! A timer's signal is handled by copying the thread's registers and the top of its stack into a slot of a shared memory. The collector unwinds
//! them; nothing is unwound here. The rules, because the host may be a database that must not stop:
//!
//! - the handler takes no lock, allocates nothing, calls no library, and touches no thread-local storage: whose timer expired stands in the signal;
//! - what it copies may not be mapped, so the kernel copies it;
//! - no other signal's handler runs in it, so nobody can leave it by a jump;
//! - before the program is locked in by a filter of system calls its timers end.
//!
//! In the order of reading: `kernel` (system calls), `memory` (the slots), `threads` (who has a timer), `handler`, `signals` (what the program does with
//! signals), `created` (new threads), `begin` (new processes), `sandbox` (filters).
//!
//! What this library exports is listed in `exports.txt`; nothing else may be visible. It needs no other library.

#![no_std]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod begin;
pub mod created;
mod handler;
mod kernel;
mod memory;
pub mod sandbox;
pub mod signals;
mod threads;

/// Asked for by the compiler. Nothing panics: `cargo xtask recorder` finds out if anything could.
#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    mallow_recorder::sys::exit_group(134)
}

/// Runs when the loader has set the library up, before the program's own code.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = begin::begin;
