//! Starts a command, and looks after it while it runs.
//!
//! A [`Launch`] is checked before anything is started or written: is there such a program, and does a preloaded library get into it?
//! It is then started with [`SpawnOptions`], and the library and variables of whoever wants to see into it. A [`RunningCommand`] passes
//! signals on, keeps its deadline, and says how it ended.
//!
//! This crate must never know what is done with the processes: recording, counting and benchmarking are others' work.
//!
//! In reading order: `launch`, `executable`, `preload`, `static_start`, `spawn_options`, `running`, `interrupts`.

mod error;
mod executable;
mod interrupts;
mod launch;
mod preload;
mod running;
mod spawn_options;
mod static_start;

pub use error::LaunchError;
pub use executable::{PRIVILEGED, find_program, is_static, obstacle_sentence};
pub use interrupts::{Interrupts, is_ignored};
pub use launch::{Launch, Preload, start_unrecorded};
pub use preload::{LIBRARY_NAME_START, own_folder, unpack};
pub use running::RunningCommand;
pub use spawn_options::{SpawnOptions, within_processors};
pub use static_start::STATIC_CURE;
