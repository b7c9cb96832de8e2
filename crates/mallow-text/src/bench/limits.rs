//! What became of limits.

use mallow_bench::{BenchCommand, Metric};

/// A limit on a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitRow {
    /// The limit, as it was typed.
    pub limit: String,
    /// What it is on.
    pub metric: Metric,
    /// The command's place and name.
    pub command: String,
    /// What it was held against; none for a limit on the command alone.
    pub against: Option<String>,
    /// Whether it does not hold; none where the figures cannot tell.
    pub is_broken: Option<bool>,
}

impl LimitRow {
    /// How a command is called in a row.
    pub fn name(index: usize, command: &BenchCommand) -> String {
        format!("{}: {}", index + 1, command.name)
    }
}

/// The row as a sentence.
pub fn sentence(row: &LimitRow) -> String {
    let against = row.against.as_ref().map_or(String::new(), |name| format!(" against {name}"));
    match row.is_broken {
        Some(true) => format!("{} is exceeded by {}{against}.", row.limit, row.command),
        Some(false) => format!("{} holds for {}{against}.", row.limit, row.command),
        None => format!(
            "{} cannot be judged for {}{against}: the interval contains the limit, or there is none.",
            row.limit, row.command
        ),
    }
}
