//! The library that `mallow cpu` preloads: for what cannot be seen from outside of a process.
//!
//! - What a script does: where the process runs one, mallow's events of the kernel send a signal with each sample, and its handler leaves the script's
//!   frames in a slot of a shared memory. The thread has not moved since the sample.
//! - Where the kernel refuses such events: a timer for each thread, on its time on processors. Its signal is handled by copying the thread's registers
//!   and the top of its stack into a slot, and the script's frames beside them. The collector unwinds them; nothing is unwound here.
//! - Names of code that a runtime makes: it is asked to write them down, before `main`.
//!
//! The rules, because the host may be a database that must not stop:
//!
//! - the handler takes no lock, allocates nothing, and calls nothing but what reads a word of a script's runtime; whose timer expired stands in the signal;
//! - what it copies may not be mapped, so the kernel copies it;
//! - no other signal's handler runs in it, so nobody can leave it by a jump;
//! - before the program is locked in by a filter of system calls its timers and its signals end;
//! - in a process without a script, where events make the samples, none of this is there, and its calls go straight on.
//!
//! In the order of reading: `kernel` (system calls), `memory` (the slots), `threads` (who has a timer), `regions` (what a process with a script has
//! beside them), `scripts`, `handler`, `signals` (what the program does with signals), `created` (new threads), `begin` (new processes), `execs`, `sandbox` (filters),
//! `main_begins`.
//!
//! What this library exports is listed in `exports.txt`; nothing else may be visible. It needs no other library.

#![no_std]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod begin;
pub mod created;
pub mod execs;
mod handler;
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
