//! `mallow completions` and `mallow man-pages` as typed. They generate files for packages.

use clap::Args;
use clap_complete::Shell;
use std::path::PathBuf;

/// `mallow completions`.
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct LowCompletions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// `mallow man-pages`.
#[derive(Debug, PartialEq, Eq, Args)]
pub(crate) struct LowManPages {
    /// The folder to write them into; pages of the same names are replaced
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}
