//! The results of limits.

use mallow_bench::{BenchCommand, Metric};

/// A limit on a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitRow {
    /// The limit, as typed.
    pub limit: String,
    /// Its metric.
    pub metric: Metric,
    /// The index and the name of the command.
    pub command: String,
    /// What it is compared with; `None` for an absolute limit.
    pub against: Option<String>,
    /// Whether it is exceeded; `None` if the measurements do not decide.
    pub is_broken: Option<bool>,
}

impl LimitRow {
    /// Returns the name of a command in a row.
    pub fn name(index: usize, command: &BenchCommand) -> String {
        format!("{}: {}", index + 1, command.name)
    }
}

/// Returns the row as a sentence.
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
