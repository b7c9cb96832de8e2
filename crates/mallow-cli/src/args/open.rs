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
    /// The viewer
    #[arg(long = "in", value_name = "VIEWER", value_enum, default_value = "firefox")]
    pub(crate) viewer: Viewer,
    /// Print the address and start no browser
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// The metric that is shown, or shown first (bytes, or the first that the file has)
    #[arg(long, value_name = "FIGURE", value_parser = choice::measure())]
    pub(crate) metric: Option<AnyMeasure>,
    #[command(flatten)]
    pub(crate) process: LowProcess,
    #[command(flatten)]
    pub(crate) expression: LowExpression,
    #[command(flatten)]
    pub(crate) window: LowWindow,
}

/// Web pages that show profiles, which they load from the machine of the browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Viewer {
    /// The Firefox Profiler, in any browser
    Firefox,
    /// speedscope
    Speedscope,
    /// Perfetto, for profiles of mallow cpu
    Perfetto,
}
