//! Frames whose callers a recorder had to guess, because their code is of a file that has no unwind table for it
//! ([`mallow_wire::shared::GUESSES_OFFSET`]).

use rustc_hash::FxHashSet;

/// The frames of a process whose callers were guessed.
#[derive(Debug, Default)]
pub(crate) struct Guesses {
    /// Their keys.
    pub(crate) keys: FxHashSet<u64>,
    /// Some found no room.
    pub(crate) or_more: bool,
    /// The name of the executable's file.
    pub(crate) executable: String,
    /// Go made it.
    pub(crate) is_go: bool,
}

impl Guesses {
    /// Returns whether a function is where stacks begin. glibc has no tables for the code in which its loader and contexts begin, musl none at all; Go has none,
    /// and runs the C code that it calls on a stack of its own.
    pub(crate) fn is_beginning(&self, module: &str, function: &str) -> bool {
        let file = module.rsplit('/').next().unwrap_or(module);
        let is_of_glibc = file.starts_with("ld-linux") || file == "libc.so.6";
        let is_of_musl = ["do_init_fini", "__libc_start_init"].contains(&function);
        let is_of_go = self.is_go && file == self.executable || function.starts_with("runtime.");
        is_of_glibc || is_of_musl || is_of_go
    }
}
