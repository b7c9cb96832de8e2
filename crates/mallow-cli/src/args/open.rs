//! `mallow open` as typed.

use super::choice::{self, AnyMeasure};
use super::filter::{LowExpression, LowProcess};
use super::window::LowWindow;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `mallow open`.
#[derive(Debug, Args)]
pub(crate) struct LowOpen {
    /// The trace, or another tool's profile (the newest profile in this folder)
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Who shows it
    #[arg(long = "in", value_name = "VIEWER", value_enum, default_value = "firefox")]
    pub(crate) viewer: Viewer,
    /// Print the address and start no browser
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// The figure that is shown, or shown first (bytes, or what the file knows)
    #[arg(long, value_name = "FIGURE", value_parser = choice::measure())]
    pub(crate) metric: Option<AnyMeasure>,
    #[command(flatten)]
    pub(crate) process: LowProcess,
    #[command(flatten)]
    pub(crate) expression: LowExpression,
    #[command(flatten)]
    pub(crate) window: LowWindow,
}

/// Pages that show profiles, and take them from the machine that they are looked at on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Viewer {
    /// The Firefox Profiler, in any browser
    Firefox,
    /// speedscope
    Speedscope,
    /// Perfetto, for profiles of mallow cpu
    Perfetto,
}
