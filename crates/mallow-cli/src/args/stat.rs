//! `mallow stat` as typed.

use super::arguments::LowArguments;
use super::form::{LowForm, TextOrJson};
use clap::Args;
use std::ffi::OsString;

/// `mallow stat`.
#[derive(Debug, Args)]
#[command(mut_arg("json", |flag| flag.help("Print JSON (schema mallow.stat/1) to stdout: the same as --format json")))]
#[command(mut_arg("output", |flag| flag.help("Write to OUT instead of stderr, and in JSON instead of stdout")))]
#[command(override_usage = "mallow stat [OPTIONS] [--] <COMMAND>...")]
pub(crate) struct LowStat {
    /// Run the command N times; show each metric's minimum, median and maximum
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) runs: u32,
    #[command(flatten)]
    pub(crate) form: LowForm<TextOrJson>,
    #[command(flatten)]
    pub(crate) arguments: LowArguments,
    /// The command to run with its arguments, or several command lines, each in quotes
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
