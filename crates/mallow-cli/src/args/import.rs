//! `mallow import` as typed.

use clap::Args;
use std::path::PathBuf;

/// `mallow import`.
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct LowImport {
    /// Another tool's file: a profile, or the statistics of an allocator
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Write the trace to OUT instead of FILE.mallow in this folder
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite the trace if it exists
    #[arg(long)]
    pub(crate) force: bool,
}
