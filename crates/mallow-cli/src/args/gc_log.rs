//! `mallow gc-log` as typed.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `mallow gc-log`.
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct LowGcLog {
    /// A log of Ruby's gc_tracer gem
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print JSON (schema mallow.gc-log/2)
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw objects and resident memory into FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Overwrite the drawing if it exists
    #[arg(long, requires = "svg")]
    pub(crate) force: bool,
    /// The column that counts requests, if it is not `access` or `requests`
    #[arg(long, value_name = "COLUMN")]
    pub(crate) requests: Option<String>,
    /// The column of resident memory, if it is not `rss` or `ru_maxrss`
    #[arg(long, value_name = "COLUMN")]
    pub(crate) rss: Option<String>,
    /// Its unit; by default found out by its size
    #[arg(long, value_name = "UNIT")]
    pub(crate) rss_unit: Option<LowRssUnit>,
}

/// A unit of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LowRssUnit {
    /// Kibibytes, as on Linux
    Kib,
    /// Bytes, as on macOS
    Bytes,
}
