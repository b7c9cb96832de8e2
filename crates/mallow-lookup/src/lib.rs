//! Names of addresses are looked up in a child process, because the files that have them are written by whoever made the program: what such a file does to a
//! parser costs names there, and nothing else.
//!
//! The child is this program's own executable with one word ([`is_child`]), started once, when the first address has to be looked up or
//! before ([`InChild::prepare`]). It reads nothing but requests to look at one module, and makes a process of each, a *worker*, by forking: it has one thread, little memory,
//! and no file but its end of a socket. A worker has limits on memory and time, may write nothing and start nothing (`filter`), and answers about its one module, through a socket of
//! its own; so it cannot speak for another module. Whoever asked takes the answer for a stranger's, waits no longer than a deadline, and says why names are
//! missing if it does not come.
//!
//! In reading order: `ask` is the side that asks, `request` and `messages` are what is said, `child` starts workers, `worker` is one, within `limits`.
//! This crate must never write what it was told anywhere; who keeps answers is `mallow-symbols`.

mod ask;
mod child;
mod filter;
mod isolation;
mod job;
mod limits;
mod messages;
#[cfg(debug_assertions)]
mod mischief;
mod request;
mod worker;

pub use ask::{InChild, end};
pub use child::{is_child, serve};
pub use job::abandoned;
