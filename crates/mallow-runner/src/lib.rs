//! Runs the commands of a benchmark.
//!
//! A [`Plan`] says what to run, how often and in which environment. A [`Bench`] makes the timed runs: the spawner (`spawn`), which
//! is too small to raise a peak of resident memory, starts each command, in randomised blocks (`turns`), until the intervals are
//! narrow enough or the time is over. Recorded runs come after that and are never timed. The result is a `mallow_bench::Session`.
//!
//! This crate must never decide which command is faster: that follows from the session. It leaves nothing running that an interrupt
//! should have ended. Processes that a command left behind are named and not killed, since one may be the command's own server.
//!
//! In reading order: `plan`, `command_line`, `spawn`, `turns`, `bench`, `recorded`; `alone` times one program without a benchmark.

mod alone;
mod bench;
mod command_line;
mod error;
mod machine;
mod plan;
mod processes;
mod recorded;
mod shell_cost;
mod spawn;
mod turns;

pub use alone::{Alone, Times};
pub use bench::{Bench, Observer, Progress};
pub use command_line::{Program, needs_shell};
pub use error::RunnerError;
pub use plan::{Failures, Input, Output, Plan, PlannedCommand, Runs, Shell};
