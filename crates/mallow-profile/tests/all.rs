//! The tests of this crate's promises, in one program: it is linked once, and its tests share the cores.

mod aggregator;
mod analysis;
mod analysis_twin;
mod analysis_verdicts;
mod diff;
