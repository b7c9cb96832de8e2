//! Starts a command, and manages it while it runs.
//!
//! A [`Launch`] is checked before anything is started or written: does the program exist, and can a library be preloaded into it?
//! It is then started with [`SpawnOptions`], and with the library and variables of the caller. A [`RunningCommand`] forwards
//! signals, enforces its deadline, and reports how it ended.
//!
//! This crate must never know what its caller does with the processes, such as recording, counting and benchmarking.
//!
//! In reading order: `launch`, `executable`, `preload`, `content`, `static_start`, `spawn_options`, `open_files`, `inherited`, `first_process`, `running`, `interrupts`, `started`.

mod content;
mod error;
mod executable;
mod first_process;
pub mod inherited;
mod interrupts;
mod launch;
pub mod open_files;
mod preload;
mod running;
mod spawn_options;
pub mod started;
mod static_start;

pub use content::{Content, Packed};
pub use error::{LaunchError, explained};
pub use executable::{PRIVILEGED, find_program, has_capabilities, is_static, obstacle_sentence};
pub use interrupts::{IgnoredSignals, Interrupts};
pub use launch::{Launch, Preload, start_unrecorded};
pub use preload::{LIBRARY_NAME_START, own_folder, unpack};
pub use running::RunningCommand;
pub use spawn_options::{SpawnOptions, within_processors};
pub use static_start::STATIC_CURE;
