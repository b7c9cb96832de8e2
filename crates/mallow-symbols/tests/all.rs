//! The tests of this crate's promises, in one program: it is linked once, and its tests share the cores.

mod ahead;
mod compiled;
mod damaged;
mod judge;
mod kept;
mod nested;
mod separate;
mod toolchain;
mod units;
