//! The collector: reads what the recorder writes in the processes of a command, and turns it into a trace and a profile.
//!
//! It does all the work outside the profiled processes while they run. Each process registers and sends its shared memory
//! (`session`), its ring buffers are drained in the order of time stamps (`drain`), frees are paired with allocations (`pairing`),
//! and the profile is summed up. The `collector` does that in passes, without a child and without a file: a `target` says whose
//! processes they are, a `sink` receives events, an observer is called between passes.
//!
//! [`record()`] is a collector that writes a trace, [`LiveSession`] one that answers queries and writes none, [`collect_own()`] one
//! for the process that it runs in; [`stat()`] reads sums that the recorder keeps itself. `mallow-launch` starts the commands.
//!
//! The crate trusts nothing that it reads from shared memory, never stops the program, and holds memory for live
//! blocks and distinct stacks only. It knows no symbols: [`record()`] takes a function
//! that resolves addresses.
//!
//! In reading order: `session`, `mapping`, `drain`, `pairing`, `process`, `collector`, `record`.

mod about;
mod ahead;
mod budget;
mod channels;
mod clock;
mod collector;
mod command_lines;
mod counts;
mod descriptors;
mod doorbell;
mod drain;
#[cfg(test)]
mod drain_tests;
mod early_ends;
mod ending;
mod error;
mod exited;
mod findings;
mod followed_code;
mod guesses;
mod heap;
mod image;
mod latecomers;
mod limits;
mod list_map;
mod live;
mod live_heap;
mod live_queries;
mod live_session;
mod live_stacks;
mod looked_at;
mod made_code;
mod mapped;
#[cfg(test)]
mod mapped_tests;
mod mapping;
mod marks;
#[cfg(test)]
mod marks_tests;
mod module_map;
mod modules;
mod moment;
mod out_of_memory;
mod output;
mod own;
mod pairing;
#[cfg(test)]
mod pairing_tests;
mod patching;
mod peer;
mod planner;
mod poll_backoff;
mod prefetch;
mod private_socket;
mod process;
mod process_writer;
mod profile;
mod record;
mod region_sites;
mod regions;
mod scopes;
mod session;
#[cfg(test)]
mod shared_memory;
mod sink;
mod stack_table;
mod stacks;
mod starts;
mod stat;
mod symbols;
mod target;
mod threads;
mod trace_file;
mod unseen;
mod workers;
mod woven;

pub use ahead::ResolveAhead;
pub use command_lines::CommandLines;
pub use ending::exit_of_status;
pub use error::CollectError;
pub use heap::{HeapMetrics, HeapSource, Linked, NotSeen, OwnAllocator, heap_source, linked_into};
pub use live_heap::{AllocatorAccount, EndedProcesses, LiveHeap, LiveProcess, Order};
pub use live_session::{Ending, LiveSession};
pub use live_stacks::LiveStacks;
pub use mallow_wire::shared::{
    MAPPINGS_VARIABLE as MAPPINGS, PYTHON_OBJECTS_VARIABLE as PYTHON_OBJECTS,
    RUNTIMES_VARIABLE as NO_RUNTIME_FLAGS,
};
pub use marks::{Counted, Scope, SettleTimeout};
pub use output::Output;
pub use own::{OwnAhead, OwnOptions, OwnQuery, ScopeEnd, collect_own};
pub use record::{Meanwhile, Packing, RecordOptions, RecordOutcome, record};
pub use regions::{RegionRun, RegionSite, WatchedProcess};
pub use stat::{StatOptions, StatOutcome, stat};
pub use symbols::Resolve;
