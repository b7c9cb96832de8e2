//! `mallow stat` as typed.

use super::arguments::LowArguments;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// `mallow stat`.
#[derive(Debug, Args)]
#[command(override_usage = "mallow stat [OPTIONS] [--] <COMMAND>...")]
pub(crate) struct LowStat {
    /// Run the command N times; show each metric's minimum, median and maximum
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) runs: u32,
    /// Print JSON (schema mallow.stat/1) to stdout
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the result to FILE
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite FILE if it exists
    #[arg(long, requires = "output")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) arguments: LowArguments,
    /// The command to run, with its arguments: everything from its name on is its own
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
