//! Script frames, decoded from what the recorder logs of a process's code: functions, files and lines, merged into native stacks.
//!
//! A [`CodeLog`] is memory that the process shares and writes at any time; nothing read from it is used unchecked. This crate must
//! never decide which frames are shown, nor know which metric is counted.
//!
//! In reading order: `code_log` (records as values), `code_lines` and `java_code` (the line of a place), `scripts` (the contents of a
//! process's log), `weave` (merges two stacks), `frame_table` (distinct frames).

mod code_lines;
mod code_log;
mod frame_table;
mod java_code;
mod scripts;
mod weave;

pub use code_log::{CodeLog, Logged};
pub use frame_table::FrameTable;
pub use java_code::JavaMethod;
pub use scripts::{ScriptLine, Scripts, unread_sentence};
pub use weave::{entries, weave};
