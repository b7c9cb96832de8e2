//! What is told while a soak runs.

use crate::sample::{Phase, Sample};

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
