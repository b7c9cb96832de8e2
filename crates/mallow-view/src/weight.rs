//! What a result means to a script.

/// The severity of a result, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Nothing is wrong.
    Fine,
    /// Undecided: no verdict was reached.
    Inconclusive,
    /// A limit or a verdict failed.
    Failed,
}

impl Weight {
    /// The exit code of a command that ends so.
    pub const fn exit_code(self) -> u8 {
        match self {
            Weight::Fine => 0,
            Weight::Failed => 1,
            Weight::Inconclusive => 3,
        }
    }
}
