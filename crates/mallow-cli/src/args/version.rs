//! `mallow version` as typed.

use super::form::{LowForm, TextOrJson};
use clap::Args;

/// `mallow version`.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(mut_arg("json", |flag| flag.help("Print JSON (schema mallow.version/1): the same as --format json")))]
pub(crate) struct LowVersion {
    #[command(flatten)]
    pub(crate) form: LowForm<TextOrJson>,
}
