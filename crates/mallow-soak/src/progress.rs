//! What is told while it runs.

use crate::Sample;
use serde::{Deserialize, Serialize};

/// The phases, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Ports and command are looked at.
    #[default]
    Preflight,
    /// The server starts.
    Start,
    /// It is left alone.
    Idle,
    /// More load than later, so that pools and arenas reach their size.
    Burst,
    /// Iterations that are not judged.
    WarmUp,
    /// Iterations that are.
    Measured,
    /// It is left alone again.
    IdleControl,
    /// It is ended.
    Stop,
}

/// One piece of news.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A phase begins.
    Phase(Phase),
    /// Something was seen.
    Sample(&'a Sample),
    /// So many iterations more, because the verdict is open.
    Extended(u32),
    /// Something that the reader should know now.
    Note(&'a str),
}
