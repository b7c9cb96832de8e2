//! Decides whether a program's memory grows with the work that it does: pure functions from observations to a verdict.
//!
//! An [`Observation`] is taken when the program is idle after a piece of work. [`judge()`] analyses each metric (live heap, resident
//! memory, managed heap, descriptors, ...) as a series over
//! requests, and combines the metrics into one [`Verdict`]. The crate knows no process, no file and no clock, so
//! a test can measure its error rates on thousands of synthetic runs.

mod conclusion;
mod doubling;
mod findings;
mod floor;
mod holder;
mod idle;
mod judge;
mod metric_trend;
mod metrics;
mod observation;
mod rules;
mod sawtooth;
mod series;
mod stacks;
mod steady;
mod theil_sen;
mod verdict;
mod window;

pub use conclusion::{Basis, Conclusion, Finding, GrowingStack, Need, Plateau, Shape, Trend, Verdict};
pub use judge::judge;
pub use observation::{Evidence, Fault, ForeignHeap, Observation, StackSeries, Stacks};
pub use rules::Rules;
pub use stacks::growing_stacks;
