//! `mallow version` as typed.

use clap::Args;

/// `mallow version`.
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct LowVersion {
    /// Print JSON (schema mallow.version/1)
    #[arg(long)]
    pub(crate) json: bool,
}
