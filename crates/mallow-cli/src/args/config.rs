//! `mallow config` as typed.

use super::form::{LowForm, TextOrJson};
use clap::Args;

/// `mallow config`.
#[derive(Debug, PartialEq, Eq, Args)]
#[command(mut_arg("json", |flag| flag.help("Print JSON (schema mallow.config/1): the same as --format json")))]
pub(crate) struct LowConfig {
    #[command(flatten)]
    pub(crate) form: LowForm<TextOrJson>,
}
