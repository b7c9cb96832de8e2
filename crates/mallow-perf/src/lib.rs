//! Samples where processors spend their time: perf events of the kernel, unwound while they come.
//!
//! The kernel copies a thread's registers and the top of its stack at each sample; `framehop` unwinds them with the tables that every
//! program carries, so no frame pointers are needed. Stacks are folded at once, and the copies are never kept.
//!
//! Records about processes and mappings come in as many rings as there are processors, so all rings are merged by time before a sample
//! is unwound. What was lost, and what was cut short, is counted.
//!
//! This crate must never decide what is shown, nor look up names of functions.
//!
//! In the order of reading:
//! - [`Folder`]: records in, a profile out; a reader of `perf.data` uses it too. Below it `spaces` (what is mapped where; through a JVM's code by `mallow-jvm`), `elf`
//!   (the tables of a file), `stack_table` (stacks without doubles), `waits` (time off the processors), `kernel_names`;
//! - [`sample`]: the events (`attr`), their rings (`ring`), their order (`rounds`), threads that wait when it begins (`asleep`), and the loop
//!   around them (`sampler`); what is mapped in a process that runs (`maps`);
//! - what a preloaded library leaves in a shared `memory`: frames of scripts, which `joins` holds against samples, `scripts` weaves into their stacks and
//!   `inside` brings together; processes that get events with a signal for that (`adopted`); lists of code that `runtimes` were asked for;
//! - `timers`: where the kernel refuses perf events, the library leaves the samples, too; `ways` decides;
//! - [`PerfError`]: why the kernel refused, and the cure.

mod adopted;
mod asleep;
mod attr;
mod clock;
mod elf;
mod error;
mod folder;
mod inside;
mod joins;
mod kernel_names;
mod maps;
mod memory;
mod ring;
mod rounds;
mod runtimes;
mod sampler;
mod scripts;
mod spaces;
mod stack_table;
mod timers;
mod waits;
mod ways;

pub use attr::Rate;
pub use error::PerfError;
pub use folder::{Folder, Mapped, Origin, Sampled, machine};
pub use sampler::{Outcome, SamplingOptions, Target};
pub use ways::sample;
