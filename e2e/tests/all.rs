//! Every test that drives the real binary, in one program: it is linked once, and its tests share the cores.

mod bad_input;
mod diff;
mod gate;
mod gate_blame;
mod gate_examples;
mod gate_guards;
mod gate_open;
mod gate_runtimes;
mod gate_selection;
mod hazards;
mod heap;
mod judges;
mod killed;
mod leaks;
mod many;
mod not_recorded;
mod own_allocators;
mod readme;
mod replaced_library;
mod self_invisible;
mod single_step;
mod situations;
mod soak;
mod soak_servers;
mod stat_exact;
mod verified;
