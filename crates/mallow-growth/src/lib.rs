//! Whether a program's memory grows with the work that it does: pure functions from what was observed to a verdict.
//!
//! Observations are taken when the program has come to rest after a piece of work ([`Observation`]). The judge
//! ([`judge()`]) looks at each metric (live heap, resident memory, managed heap, descriptors, ...) as a series over
//! requests, and puts the metrics together into one [`Verdict`]. The crate knows no process, no file and no clock, so
//! its error rates can be measured on thousands of made-up runs in a test.

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
