//! What runs inside the profiled process: it finds the caller's stack and writes what happened into shared
//! memory.
//!
//! The library that exports the malloc family (`mallow-preload`) calls in here with the caller's registers.
//! The rules of this crate, because its host may be a database that must not stop:
//!
//! - no allocation, no lock that the host can hold, no library call but the loader's object look-up;
//! - a signal handler may enter at any instruction, and its calls are recorded like any other;
//! - the host's stack is read, never written; its file descriptors, signals and errno are left alone;
//! - when something is missing the host goes on and a counter says what was not recorded.
//!
//! The modules are a chain: each uses only those above it, which `cargo xtask tidy` holds. Read from the top it is a proof, every
//! step of which rests on what was read before.
//!
//! | module | what it knows |
//! |---|---|
//! | [`sys`] | system calls |
//! | [`tls`] | one word for each thread |
//! | [`thread_status`] | what a thread is doing |
//! | [`process`] | the shared memory, forks, whether recording has ended |
//! | [`bounds`] | elements of arrays, without a way to panic |
//! | [`elf`] | the loaded objects' symbols and build ids |
//! | [`named`] | functions of a static executable, whose names no loader knows |
//! | [`real`] | the functions that we stand in front of |
//! | [`objects`] | which of them holds an address |
//! | [`unloads`] | since when an address means what it means |
//! | [`cfi`] | what its unwind tables say of an address |
//! | [`sandbox`] | which system calls lock a thread in |
//! | `collector_timeout` | for how long the collector is believed to live |
//! | [`ring`] | a record, written and published |
//! | [`stamps`] | which records need a time |
//! | [`nodes`] | stacks as ids |
//! | `log_room` | room at the end of a log |
//! | [`modules`] | the log of what is mapped where |
//! | [`script`] | the frames of the script that a thread runs |
//! | [`rules`] | how a frame is left, in one word |
//! | [`stack_range`] | where a thread's stack lies |
//! | `near` | room near an object |
//! | [`trampolines`] | where the instructions of patched functions are |
//! | [`walk`] | from a frame to its caller |
//! | [`from_scratch`] | a stack, with nothing kept of it |
//! | [`path_cache`] | recent paths to a kept frame |
//! | [`found`] | the nodes of stacks that were walked lately |
//! | [`memo`] | the stack, by comparing it with the last one |
//! | `verify` | the stack again, in two other ways |
//! | [`resident`] | how much memory of its own the process has |
//! | [`session`] | what the environment says of the collector |
//! | `plan` | what mallow says of functions that are to be patched |
//! | [`patches`] | functions of an allocator in the program are led to our hooks |
//! | `asking` | mallow is asked about objects |
//! | [`loads`] | objects that are there, and that come |
//! | [`bootstrap`] | the start, in a process and in a forked child |
//! | [`channels`] | a ring and a memo for each thread |
//! | [`thread`] | who is calling, and may the call be recorded? |
//! | [`marks`] | where the program says it stands |
//! | [`stat`] | counting without a collector |
//! | [`calls`] | what each kind of call leaves behind |
//! | [`outside`] | how code in the program finds the preloaded library |
//! | [`watchers`] | who watches a program that the recorder is linked into |
//! | [`runtimes`] | runtimes are asked to write down what code they make |
//! | [`start_main`] | the moment before `main` |
//! | [`starts`] | programs that are started, noted |

#![cfg_attr(not(test), no_std)]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod asking;
pub mod bootstrap;
pub mod bounds;
pub mod calls;
pub mod cfi;
pub mod channels;
mod collector_timeout;
pub mod elf;
pub mod found;
pub mod from_scratch;
pub mod loads;
mod log_room;
pub mod marks;
pub mod memo;
pub mod modules;
pub mod named;
mod near;
pub mod nodes;
pub mod objects;
pub mod outside;
pub mod patches;
pub mod path_cache;
mod plan;
pub mod process;
pub mod real;
pub mod resident;
pub mod ring;
pub mod rules;
pub mod runtimes;
pub mod sandbox;
pub mod script;
pub mod session;
pub mod stack_range;
pub mod stamps;
pub mod start_main;
pub mod starts;
pub mod stat;
pub mod sys;
pub mod thread;
pub mod thread_status;
pub mod tls;
pub mod trampolines;
pub mod unloads;
#[cfg(feature = "verify")]
pub mod verify;
pub mod walk;
pub mod watchers;

/// The caller of a hooked function, as its first instruction saw it.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// The stack pointer: it points at the return address.
    pub sp: usize,
    /// The frame pointer register, whatever the caller uses it for.
    pub bp: usize,
}
