//! `mallow gc-log` as typed.

use super::form::{LowForm, TextOrJson};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// `mallow gc-log`.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(mut_arg("json", |flag| flag.help("Print JSON (schema mallow.gc-log/3): the same as --format json")))]
#[command(mut_arg("force", |flag| flag.help("Overwrite OUT and the drawing if they exist")))]
pub(crate) struct LowGcLog {
    /// A log of Ruby's gc_tracer gem
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) form: LowForm<TextOrJson>,
    /// Draw objects and resident memory into FILE too
    #[arg(long, value_name = "FILE", group = "made")]
    pub(crate) svg: Option<PathBuf>,
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
