//! Whether command lines are kept, as typed.

use clap::Args;
use mallow_collect::CommandLines;

/// What is written down of command lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub(crate) struct LowArguments {
    /// Keep only the name of the program that each process runs, and none of its arguments
    #[arg(long)]
    pub(crate) no_arguments: bool,
}

impl LowArguments {
    pub(crate) fn command_lines(self) -> CommandLines {
        if self.no_arguments { CommandLines::ProgramsAlone } else { CommandLines::Whole }
    }
}
