//! The tests of this crate in one program: it is linked once, and its tests share the cores.

mod bombs;
mod commands;
mod compat;
mod events;
mod exported_events;
mod flamegraph;
mod formats;
mod frames;
mod heap_dumps;
mod module_bombs;
mod not_told;
#[cfg(feature = "soak")]
mod soak;
mod strangers;
