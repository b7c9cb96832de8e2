//! Samples CPUs by perf events of the kernel, and unwinds the samples while they come.
//!
//! The kernel copies a thread's registers and the top of its stack at each sample; `framehop` unwinds them with the unwind tables of
//! the program, so no frame pointers are needed. Stacks are summed up at once, and the copies are not kept.
//!
//! Records of processes and mappings come in as many rings as there are CPUs, so all rings are merged by time before a sample
//! is unwound. What was lost or truncated is counted.
//!
//! This crate must never decide what is shown, nor resolve symbols.
//!
//! In reading order:
//! - [`Folder`]: records in, a profile out; the reader of `perf.data` uses it too. It uses `spaces` (mappings of a process; code of a
//!   JVM by `mallow-jvm`), `elf` (unwind tables of a file), `stack_table` (distinct stacks), `waits` (off-CPU time), `kernel_names`;
//! - [`sample`]: what is asked for and comes of it (`sampling`), one event (`attr`), those of all threads and processors (`events`), their
//!   rings (`ring`), their order (`rounds`), threads that are waiting at the start (`asleep`), and the loop around them (`sampler`), by a
//!   thread that is urgent (`urgency`); the mappings of a running process (`maps`); who runs on when the command has ended (`left_behind`);
//! - what a preloaded library writes into a shared `memory`: script frames, which `joins` matches with samples, `scripts` merges into
//!   their stacks and `inside` collects; processes that get events with a signal for that (`adopted`); symbol files that
//!   `runtimes` were asked to write;
//! - `timers`: where the kernel refuses perf events, the library takes the samples, too; `ways` decides;
//! - [`PerfError`]: why the kernel refused, and the cure.

mod adopted;
mod asleep;
mod attr;
mod clock;
mod elf;
mod error;
mod events;
mod folder;
mod inside;
mod joins;
mod kernel_names;
mod left_behind;
mod machine;
mod made_code;
mod maps;
mod memory;
mod ring;
mod rounds;
mod runtimes;
mod sampler;
mod sampling;
mod scripts;
mod spaces;
mod stack_table;
mod timers;
mod urgency;
mod waits;
mod ways;

pub use attr::Rate;
pub use error::PerfError;
pub use folder::{Folder, Mapped, Origin, Sampled};
pub use machine::machine;
pub use sampling::{Outcome, SamplingOptions, Target};
pub use ways::sample;
