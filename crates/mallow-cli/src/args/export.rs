//! `mallow export` as typed.

use super::choice::{self, AnyMeasure};
use super::filter::{LowExpression, LowProcess};
use super::form::LowOutput;
use super::window::LowWindow;
use clap::Args;
use mallow_formats::export::ExportFormat;
use std::path::PathBuf;

/// `mallow export`.
#[derive(Debug, Args)]
#[command(mut_arg("output", |flag| flag.help("Write to OUT instead of stdout; packed if it ends in .gz or .zst")))]
pub(crate) struct LowExport {
    /// The trace, or another tool's profile (the newest profile in this folder)
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// What to write
    #[arg(short, long, value_parser = choice::export_format())]
    pub(crate) format: ExportFormat,
    #[command(flatten)]
    pub(crate) output: LowOutput,
    #[command(flatten)]
    pub(crate) process: LowProcess,
    /// Leave the lines of scripts out: native stacks, with the interpreter's own functions
    #[arg(long)]
    pub(crate) native: bool,
    /// Leave inlined functions out; their metrics count for the function that they were inlined into
    #[arg(long)]
    pub(crate) no_inline: bool,
    /// Leave out arguments of command lines, the folders of all paths, and data about the machine
    #[arg(long)]
    pub(crate) redact: bool,
    #[command(flatten)]
    pub(crate) expression: LowExpression,
    #[command(flatten)]
    pub(crate) window: LowWindow,
    /// The metric of a format that has only one, or shows one first (bytes, or the first that the file has)
    #[arg(long = "metric", alias = "measure", value_name = "METRIC", value_parser = choice::measure())]
    pub(crate) measure: Option<AnyMeasure>,
}
