//! Symbols of JIT-compiled code, as its runtime wrote them down.
//!
//! Runtimes write either a perf map, a line for each function, or a jitdump, a record for each. Both say which function was at an
//! address and not when it was removed. Who follows a map while it is written knows what was there when; who reads it at the end uses the
//! later one of two functions at one address.
//!
//! This crate must never trust a file that another user could have written, nor ask a runtime for anything.
//!
//! In reading order: `code_names` (functions by address), `live_code` and `followed_map` (the same while a map is written), `jitdump`, `frame` (a symbol as a frame of its language).

mod code_names;
mod followed_map;
mod frame;
pub mod jitdump;
mod live_code;

pub use code_names::{CodeNames, is_trusted, map_path};
pub use followed_map::FollowedMap;
pub use frame::frame_of;
pub use live_code::LiveCode;
