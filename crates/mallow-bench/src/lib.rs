//! What a benchmark of commands found: its runs, what is measured of them, and how commands compare.
//!
//! Values and pure functions: whoever runs commands fills a [`Session`]; whoever shows or judges it asks here. This crate must never take what
//! was not measured for 0, nor compare runs of the recorder's pass with timed ones: allocations come from runs of their own.
//!
//! In reading order: [`Run`], [`BenchCommand`] and [`Session`] are what was measured; a [`Metric`] is one figure of a run; a [`Comparison`]
//! holds a command against another; [`Finding`] is what speaks against a measurement; [`limited`] judges a limit.

mod comparison;
mod finding;
mod limit;
mod metric;
mod session;

pub use comparison::{Comparison, Counted, compare, counted, pairs};
pub use finding::{Finding, Subject, findings};
pub use limit::{Ends, limited};
pub use metric::{Metric, NoWeights};
pub use session::{
    Allocations, BenchCommand, EventCount, Machine, Order, Run, RunEnd, Session, ShellCost, Stop,
};
