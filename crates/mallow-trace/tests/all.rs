//! The tests of this crate's promises, in one program: it is linked once, and its tests share the cores.

mod events;
mod payloads;
mod reader;
mod writer;
