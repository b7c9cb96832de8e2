//! What a recording says about itself: command, start, machine.

use crate::command_lines::CommandLines;
use mallow_profile::{COUNTING_VERSION, COUNTING_VERSION_MAPPINGS, Recording};
use std::ffi::OsString;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A recording of this command that begins after a delay, with what programs map themselves or without.
pub(crate) fn recording_of(
    command: &[OsString],
    command_lines: CommandLines,
    delay: Duration,
    has_mappings: bool,
) -> Recording {
    let system = rustix::system::uname();
    let mut environment = vec![
        ("kernel".to_owned(), system.release().to_string_lossy().into_owned()),
        ("machine".to_owned(), system.machine().to_string_lossy().into_owned()),
    ];
    let processors = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    environment.push(("processors".to_owned(), processors.to_string()));
    Recording {
        command: command_lines.words(command),
        started_unix_us: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.saturating_add(delay).as_micros() as u64),
        counting_version: if has_mappings { COUNTING_VERSION_MAPPINGS } else { COUNTING_VERSION },
        recorder_version: env!("CARGO_PKG_VERSION").to_owned(),
        environment,
        ..Recording::default()
    }
}
