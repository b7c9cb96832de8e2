//! `mallow symbolize` as typed.

use super::form::LowOutput;
use clap::Args;
use std::path::PathBuf;

/// `mallow symbolize`.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(mut_arg("output", |flag| flag.help("Write the trace with its names to OUT, and leave FILE as it is")))]
pub(crate) struct LowSymbolize {
    /// The trace that `mallow record` wrote
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) output: LowOutput,
}
