//! What the recorder and the collector share: the memory between them, and the message that hands it over.
//!
//! Both sides are compiled from this crate, so a layout exists once. It holds no behaviour beyond packing and
//! unpacking: who waits for whom, and what a metric means, is decided elsewhere.
//!
//! - [`shared`] is the memory between a profiled process and the collector: header, node table, module log,
//!   rings.
//! - [`event`] is the record that a hooked call leaves in its thread's ring.
//! - [`executable`] says whether a library can be preloaded into a program.
//! - [`jvm`] says which places a JVM's tables for its debugger are asked for.
//! - [`handshake`] is the one message that hands the memory over.
//! - [`patches`] is what is written over functions of an allocator that is linked into a program.
//! - [`plan_request`] is what a process asks about objects that are loaded into it.
//! - [`script`] is how frames of scripts stand in that memory.
//! - [`static_start`] is what the recorder is told in a static executable.
//! - [`starts`] are notes in that memory: programs that are started.
//! - [`wanted`] is what a session asks of the recorder.
//! - [`spawning`] is what the spawner of timed commands is told and says.
//! - [`timers`] is the memory in which timers of threads leave samples.
//!
//! The recorder builds this crate: no allocator, no std, no dependency.

#![no_std]

pub mod event;
pub mod executable;
pub mod handshake;
pub mod jvm;
pub mod patches;
pub mod plan_request;
pub mod script;
pub mod shared;
pub mod spawning;
pub mod starts;
pub mod static_start;
pub mod timers;
pub mod wanted;
