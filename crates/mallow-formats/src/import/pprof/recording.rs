//! The command and the time of the recording in a pprof file.

use super::messages::Messages;
use crate::pprof_proto::COMMAND_COMMENT;
use mallow_profile::Recording;

/// Returns the recording; its command is that of our own comment, or else the first mapping's file.
pub(super) fn recording_of(messages: &Messages) -> Recording {
    let comment =
        messages.comments.iter().find_map(|&comment| messages.text(comment).strip_prefix(COMMAND_COMMENT));
    // The first mapping is that of the program.
    let program = || messages.mappings.first().map(|mapping| messages.text(mapping.filename));
    let command = comment.or_else(program).filter(|command| !command.is_empty());
    let micros = |ns: i64| u64::try_from(ns / 1000).unwrap_or(0);
    Recording {
        command: command.iter().map(|&command| command.to_owned()).collect(),
        started_unix_us: micros(messages.time_ns),
        duration_us: micros(messages.duration_ns),
        ..Recording::default()
    }
}
