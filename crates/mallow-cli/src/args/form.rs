//! The output format of a result, and its destination: the same flags in every command.

use crate::destination::{Destination, NewFile};
use clap::{ArgGroup, Args, ValueEnum};
use std::path::PathBuf;

/// The output formats of a command.
pub(crate) trait Form: ValueEnum + Copy + PartialEq + Send + Sync + 'static {
    /// The default format.
    const DEFAULT: Self;
    /// The format that `--json` means.
    const JSON: Self;
}

/// Where a result goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(group = ArgGroup::new("made").args(["output"]).multiple(true))]
pub(crate) struct LowOutput {
    /// Write to OUT instead of stdout
    #[arg(short, long, value_name = "OUT")]
    pub(crate) output: Option<PathBuf>,
    /// Overwrite OUT if it exists
    #[arg(long, requires = "made")]
    pub(crate) force: bool,
}

impl LowOutput {
    /// Returns the file that was named, even if it is stdout.
    pub(crate) fn named(self) -> Option<NewFile> {
        self.output.map(|path| NewFile { path, force: self.force })
    }
}

impl From<LowOutput> for Destination {
    fn from(low: LowOutput) -> Destination {
        Destination::of(low.output, low.force)
    }
}

/// A result's form, and where it goes.
#[derive(Clone, Debug, PartialEq, Eq, Args)]
pub(crate) struct LowForm<F: Form> {
    /// What to write
    #[arg(short, long, value_name = "FORMAT", value_enum)]
    format: Option<F>,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    #[command(flatten)]
    pub(crate) output: LowOutput,
}

impl<F: Form> LowForm<F> {
    /// Returns whether a document for programs is requested.
    pub(crate) fn is_json(&self) -> bool {
        self.form() == F::JSON
    }

    /// Returns the requested format.
    pub(crate) fn form(&self) -> F {
        if self.json { F::JSON } else { self.format.unwrap_or(F::DEFAULT) }
    }
}

/// A page or a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextOrJson {
    /// A page for people
    Text,
    /// A document for programs
    Json,
}

impl Form for TextOrJson {
    const DEFAULT: Self = TextOrJson::Text;
    const JSON: Self = TextOrJson::Json;
}
