//! Runs a program with the recorder in it, and turns what its rings say into a trace and a profile.
//!
//! The crate owns everything that happens outside the profiled process while it runs: it unpacks the preload
//! library, starts the command, takes the shared memory that each process hands over (`session`), drains the
//! rings in the order in which things happened (`drain`), pairs frees with allocations (`pairing`), folds the
//! profile, and writes the trace (`trace_file`).
//!
//! It trusts nothing that it reads from shared memory, never stops the program, and holds memory for live
//! blocks and distinct stacks only. Symbols are somebody else's knowledge: [`record()`] is given a function
//! that resolves addresses.

mod about;
mod ahead;
mod clock;
mod descriptors;
mod drain;
#[cfg(test)]
mod drain_tests;
mod ending;
mod error;
mod executable;
mod heap;
mod interrupts;
mod lanes;
mod launch;
mod live;
mod live_stacks;
mod mapping;
mod marks;
#[cfg(test)]
mod marks_tests;
mod module_map;
mod output;
mod pairing;
#[cfg(test)]
mod pairing_tests;
mod pause;
mod preload;
mod process;
mod profile;
mod questions;
mod record;
mod regions;
mod session;
mod setting;
#[cfg(test)]
mod shared_memory;
mod stack_table;
mod stacks;
mod starts;
mod stat;
mod symbols;
mod trace_file;
mod unseen;
mod watch;

pub use ahead::LookAhead;
pub use error::CollectError;
pub use heap::{HeapFigures, HeapSource, Linked, heap_source, linked_into};
pub use interrupts::{Interrupts, is_ignored};
pub use launch::start_unrecorded;
pub use live_stacks::LiveStacks;
pub use marks::{Counted, Patience, Scope};
pub use output::Output;
pub use record::{Ending, RecordOptions, RecordOutcome, record};
pub use regions::{RegionRun, RegionSite, WatchedProcess};
pub use setting::Setting;
pub use stat::{StatOptions, StatOutcome, stat};
pub use symbols::Resolve;
pub use watch::{AllocatorAccount, LiveProcess, Look, Order, Watched};
