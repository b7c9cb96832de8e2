//! What a result means to a script.

/// How heavy a result weighs, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Nothing is wrong.
    Fine,
    /// Nobody can tell: no verdict was reached.
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
