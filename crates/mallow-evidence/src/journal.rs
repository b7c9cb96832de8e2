//! The journal: samples as they are taken, a line of JSON each, so that a run of hours can be read while it goes on, and
//! gone on with when it was broken off.
//!
//! The first line says what is soaked; every further one is a [`Sample`]. A line that was cut off in the middle, which a
//! machine that went down leaves behind, is left out.

use crate::sample::Sample;
use serde::{Deserialize, Serialize};

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JournalHead {
    /// `mallow.soak-samples/1`.
    pub schema: String,
    /// The server's command, or `process 123`.
    pub command: Vec<String>,
    /// What was asked for.
    pub work: String,
    /// Wall-clock start, in microseconds since 1970.
    pub started_unix_us: u64,
    /// The server's process id, and when it started, in clock ticks since the machine did: by these a server that runs on
    /// is known again.
    pub process: (u32, u64),
}

/// The schema of the lines.
pub const SCHEMA: &str = "mallow.soak-samples/1";

/// A journal as it was read.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalRead {
    /// The first line.
    pub head: JournalHead,
    /// The samples, in the order of time.
    pub samples: Vec<Sample>,
}

/// Why a text is no journal: a clause.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct JournalError(pub String);

impl JournalRead {
    /// Reads a journal's text, whether or not somebody still writes it.
    ///
    /// # Errors
    /// When it is no journal, or a whole line makes no sense.
    pub fn from_text(text: &str) -> Result<JournalRead, JournalError> {
        let whole = text.rfind('\n').map_or("", |at| &text[..at]);
        let mut lines = whole.lines().enumerate();
        let head: JournalHead = lines
            .next()
            .and_then(|(_, line)| serde_json::from_str(line).ok())
            .filter(|head: &JournalHead| head.schema == SCHEMA)
            .ok_or_else(|| {
                JournalError(format!("it is no journal of a soak (its first line does not say {SCHEMA})"))
            })?;
        let samples = lines
            .map(|(at, line)| {
                serde_json::from_str(line).map_err(|error| JournalError(format!("line {}: {error}", at + 1)))
            })
            .collect::<Result<_, _>>()?;
        Ok(JournalRead { head, samples })
    }

    /// Leaves the samples of one server.
    pub fn keep_server(&mut self, server: u32) {
        self.samples.retain(|sample| sample.server == server);
    }
}
