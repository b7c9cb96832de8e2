//! Maps the recorder's library into a static executable, which no loader does.
//!
//! The program is started under `ptrace` and stands before its first instruction. Then this crate does what a loader would: it maps the
//! library's file (`library`), by system calls that the program is made to make (`tracee`), gives it its addresses, and adds the
//! library's thread-local storage to the program's own (`thread_local`, `auxiliary`), so that libc makes room for both in every thread. Then the
//! program is let go, and begins in the library (`loading`).
//!
//! It must never let a program run that is half changed: what fails here ends the process, which has not yet done anything.
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
