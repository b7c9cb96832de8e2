//! Results of a benchmark of commands: its runs, their metrics, and how commands compare.
//!
//! Values and pure functions: the code that runs commands fills a [`Session`]; the code that prints or judges it calls this crate.
//! This crate must never treat a missing measurement as 0, nor compare recorded runs with timed ones: allocations come from runs
//! of their own.
//!
//! In reading order: [`Run`], [`BenchCommand`] and [`Session`] are what was measured; a [`Metric`] is one quantity of a run; a
//! [`Comparison`] compares one command with another; a [`Finding`] is a reason to doubt a measurement; [`limited`] checks a limit.

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
