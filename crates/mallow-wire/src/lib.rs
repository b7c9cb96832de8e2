//! What the recorder and the collector share: the layout of the shared memory, and the handshake that sends it.
//!
//! Both sides are compiled from this crate, so a layout is defined once. It contains no behaviour except packing and
//! unpacking: who waits for whom, and what a metric means, is decided elsewhere.
//!
//! - [`shared`]: the memory between a profiled process and the collector: its layout and its header; the parts of it are in `node` (the
//!   table of stacks), `module_log`, `guesses`, `channel` (a thread's ring and counters) and `helper_thread`.
//! - [`event`]: the record that a hooked call writes into its thread's ring.
//! - [`executable`]: whether a library can be preloaded into a program.
//! - [`jvm`]: which fields of a JVM's tables for its debugger are read.
//! - [`handshake`]: the one message that sends the shared memory.
//! - [`order`]: what every event reads: whether it needs a time stamp, and whether its stack is wanted.
//! - [`patches`]: patches of functions of a statically linked allocator.
//! - [`plan_request`]: a process's requests about objects that are loaded into it.
//! - [`script`]: the format of script frames in shared memory.
//! - [`static_start`]: what mallow passes to the recorder in a static executable.
//! - [`starts`]: records in shared memory of programs that are started.
//! - [`wanted`]: what a session requests from the recorder.
//! - [`spawning`]: requests to the spawner of timed commands, and its replies.
//! - [`timers`]: the shared memory into which per-thread timers write samples.
//!
//! The recorder builds this crate: no allocator, no std, no dependency.

#![no_std]

mod channel;
pub mod event;
pub mod executable;
mod guesses;
pub mod handshake;
mod helper_thread;
pub mod jvm;
mod module_log;
mod node;
pub mod order;
pub mod patches;
pub mod plan_request;
pub mod script;
pub mod shared;
pub mod spawning;
pub mod starts;
pub mod static_start;
pub mod timers;
pub mod wanted;
