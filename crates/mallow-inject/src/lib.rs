//! Maps the recorder's library into a static executable, which has no loader that could.
//!
//! The program is started under `ptrace` and is stopped before its first instruction. Then this crate does a loader's work: it maps
//! the library's file (`library`), by system calls that the program is made to execute (`tracee`), relocates it, and adds the
//! library's thread-local storage to the program's own (`thread_local`, `auxiliary`), so that libc makes room for both in every
//! thread. Then the program is released, and starts in the library (`loading`).
//!
//! It must never let a half-changed program run: a failure here ends the process, which has not yet executed anything.
//!
//! In reading order: `tracee`, `library`, `executable`, `thread_local`, `auxiliary`, `loading`.

mod auxiliary;
mod error;
mod executable;
mod library;
mod loading;
mod thread_local;
mod tracee;

pub use error::InjectError;
pub use library::Library;
pub use loading::load;
pub use tracee::{NOT_ALLOWED, be_traced};
