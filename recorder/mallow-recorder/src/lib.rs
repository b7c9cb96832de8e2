//! The code that runs inside the profiled process: it unwinds the caller's stack and writes each event into shared memory.
//!
//! The library that exports the malloc family (`mallow-preload`) calls this crate with the caller's registers.
//! The rules of this crate, because its host may be a database that must not stop:
//!
//! - no allocation, no lock that the host can hold, no library call except the loader's object look-up;
//! - a signal handler may interrupt at any instruction, and its calls are recorded like any other;
//! - the host's stack is read, never written; its file descriptors, signals and errno are left alone;
//! - when something is missing the host goes on, and a counter says what was not recorded.
//!
//! The modules are a chain: each uses only those above it, which `cargo xtask tidy` checks. Read from the top, each module relies
//! only on what was read before.
//!
//! | module | what it does |
//! |---|---|
//! | [`sys`] | system calls |
//! | [`tls`] | one word of thread-local storage |
//! | [`thread_status`] | what a thread is doing |
//! | [`own_limits`] | limits that the program sets for itself |
//! | [`process`] | global state: the shared memory, forks, whether recording has ended |
//! | [`bounds`] | array access without a way to panic |
//! | [`elf`] | symbols and build ids of loaded objects |
//! | [`named`] | functions of a static executable, which no loader has symbols of |
//! | [`trampolines`] | the moved instructions of patched functions |
//! | [`real`] | the real functions behind the hooks |
//! | [`objects`] | which loaded object contains an address |
//! | [`unloads`] | generations of addresses: which code was unloaded since |
//! | [`cfi`] | interprets the unwind tables for an address |
//! | [`sandbox`] | detects system calls that sandbox a thread |
//! | [`filters`] | runs a filter of system calls for those of ours |
//! | `collector_timeout` | how long the collector may be silent |
//! | `doorbell` | wakes a collector that sleeps |
//! | [`ring`] | writes and publishes records |
//! | [`stamps`] | which records need a time stamp |
//! | [`nodes`] | the node table: stacks as ids |
//! | [`found`] | a thread's cache of nodes that it looked up |
//! | `log_room` | reserves room at the end of a log |
//! | [`modules`] | the module log: which file is mapped where |
//! | [`script`] | script frames of a thread |
//! | [`rules`] | unwind rules, one word each, cached |
//! | [`stack_range`] | the bounds of a thread's stack |
//! | [`locking`] | a program that locks all of its memory |
//! | `near` | finds free address space near an object |
//! | `guesses` | notes frames whose callers were guessed |
//! | [`walk`] | one step of a stack walk, from a frame to its caller |
//! | [`from_scratch`] | a whole stack walk without caches |
//! | `plain` | frames that nearly all are, followed by a short loop |
//! | [`path_cache`] | recent paths to a kept frame |
//! | [`whole_stacks`] | short stacks that are known by all their words |
//! | `kept` | what is kept of a frame of the last stack |
//! | [`memo`] | a stack walk that reuses the last stack |
//! | `verify` | checks a stack in two other ways |
//! | [`resident`] | how much resident memory the process has |
//! | [`session`] | parses the session from the environment |
//! | `plan` | parses mallow's plan of functions to patch |
//! | [`patches`] | patches functions of a statically linked allocator |
//! | `asking` | asks mallow for plans of loaded objects |
//! | [`loads`] | objects that are loaded, now and later |
//! | [`bootstrap`] | starts recording, in a process and in a forked child |
//! | [`channels`] | a ring and a memo for each thread |
//! | [`thread`] | the calling thread's state: may the call be recorded? |
//! | [`marks`] | marks of the program: begin and end of regions |
//! | [`recorded`] | calls that are recorded, the short way in |
//! | [`counted`] | calls that are only counted |
//! | [`way_in`] | one look at the thread's state, which decides how a call goes on |
//! | [`shadow`] | sizes of live blocks, for counting without a collector |
//! | [`stat`] | counting without a collector |
//! | [`calls`] | what each kind of call records |
//! | [`mappings`] | what the program maps itself |
//! | [`outside`] | how code in the program finds the preloaded library |
//! | [`watchers`] | who observes a program that has the recorder linked in |
//! | [`runtimes`] | asks runtimes to write symbols of JIT-compiled code |
//! | [`start_main`] | code that runs just before `main` |
//! | [`starts`] | records which programs are started |

#![cfg_attr(not(test), no_std)]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod asking;
pub mod bootstrap;
pub mod bounds;
pub mod calls;
pub mod cfi;
pub mod channels;
mod collector_timeout;
pub mod counted;
mod doorbell;
pub mod elf;
pub mod filters;
pub mod found;
pub mod from_scratch;
mod guesses;
mod kept;
pub mod loads;
pub mod locking;
mod log_room;
pub mod mappings;
pub mod marks;
pub mod memo;
pub mod modules;
pub mod named;
mod near;
pub mod nodes;
pub mod objects;
pub mod outside;
pub mod own_limits;
pub mod patches;
pub mod path_cache;
mod plain;
mod plan;
pub mod process;
pub mod real;
pub mod recorded;
pub mod resident;
pub mod ring;
pub mod rules;
pub mod runtimes;
pub mod sandbox;
pub mod script;
pub mod session;
pub mod shadow;
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
pub mod way_in;
pub mod whole_stacks;

/// The caller of a hooked function, as its first instruction saw it.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// The stack pointer: it points at the return address.
    pub sp: usize,
    /// The frame pointer register, whatever the caller uses it for.
    pub bp: usize,
}
