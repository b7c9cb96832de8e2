//! Finds the functions of an allocator that is linked into a program, and plans how calls of them are seen.
//!
//! Such functions never come by the `malloc` that a preloaded library stands in front of. So the recorder writes a jump over their first
//! instructions, before the program's own code runs. Everything that needs thinking is done here, before the start: which functions there are
//! (`names`, `families` and `wanted`, by the tables of symbols; `static_program` for executables that no loader starts), what their first instructions are and what they become in another place (`displace`), and whether the
//! rest of the code lets that be done (`callers`). What the recorder is handed is a list of bytes ([`mallow_wire::patches`]).
//!
//! A symbol may say anything. This crate must never plan a patch of which it is not sure that it does no harm: what it does not understand it
//! refuses, by name and with the reason.
//!
//! In reading order: `names`, `families`, `static_program`, `wanted`, `displace`, `callers`, `image`, `plan`.

mod callers;
mod displace;
mod families;
mod image;
mod names;
mod plan;
mod static_program;
mod wanted;

pub use families::SANITIZERS;
pub use image::{Examined, Image, Unseen};
pub use plan::plan_of;
