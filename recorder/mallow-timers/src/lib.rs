//! The library that `mallow cpu` preloads, for what cannot be seen from outside a process.
//!
//! - Script frames: where the process runs a script, mallow's perf events send a signal with each sample, and its handler writes
//!   the script's frames into a slot of a shared memory. The thread has not moved since the sample.
//! - Timers, where the kernel refuses perf events: a timer for each thread, on its CPU time. The handler of its signal copies the
//!   thread's registers and the top of its stack into a slot, and the script's frames beside them. The collector unwinds the
//!   copies; nothing is unwound here.
//! - Symbols of JIT-compiled code: the runtime is asked to write them, before `main`.
//!
//! The rules, because the host may be a database that must not stop:
//!
//! - The handler takes no lock, allocates nothing, and calls nothing except functions that read a word of a script's runtime. The
//!   signal itself says whose timer expired.
//! - What the handler copies may not be mapped, so the kernel copies it.
//! - No other signal's handler runs within it, so nobody can leave it by a jump.
//! - Before a seccomp filter is set, the program's timers and signals end.
//! - In a process without a script, where perf events take the samples, none of this is active, and hooked calls go straight on.
//!
//! In reading order: `kernel` (system calls), `memory` (the slots), `ids`, `threads` (who has a timer), `regions` (what a process with a
//! script has beside them), `scripts`, `handler`, `signals` (what the program does with signals), `created` (new threads), `begin`
//! (new processes), `execs`, `sandbox` (filters), `main_begins`.
//!
//! The exports are listed in `exports.txt`; nothing else may be visible. The library needs no other library.

#![no_std]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod begin;
pub mod created;
pub mod execs;
mod handler;
mod ids;
mod kernel;
pub mod main_begins;
mod memory;
mod regions;
pub mod sandbox;
mod scripts;
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
