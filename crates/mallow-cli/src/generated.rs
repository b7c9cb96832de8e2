//! Generates the files that packages contain beside the binary, from the definition of the command line: completions
//! for shells, and man pages.
//!
//! Nothing here is written by hand, so that neither can differ from `--help`.

use crate::args::{LowArgs, LowCompletions, LowManPages};
use crate::{exit_code, output};
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use mallow_query::Failure;
use std::path::Path;

/// Prints the completion script of a shell.
pub(crate) fn completions(wanted: &LowCompletions) -> Result<u8, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(wanted.shell, &mut LowArgs::command(), "mallow", &mut text);
    output::to_stdout(|out| out.write_all(&text))?;
    Ok(exit_code::FINE)
}

/// Writes a man page for mallow and one for each command: `mallow.1`, `mallow-record.1`, `mallow-heap-diff.1`.
pub(crate) fn man_pages(wanted: &LowManPages) -> Result<u8, Failure> {
    let mut command = LowArgs::command();
    command.build();
    pages(&command, &wanted.folder)?;
    Ok(exit_code::FINE)
}

fn pages(command: &Command, folder: &Path) -> Result<(), Failure> {
    let man = Man::new(command.clone()).source(concat!("mallow ", env!("CARGO_PKG_VERSION")));
    let path = folder.join(man.get_filename());
    let mut page = Vec::new();
    man.render(&mut page)
        .and_then(|()| mallow_files::replace(&path, &page))
        .map_err(|error| Failure::writing(&path, &error))?;
    // A page that lists the pages is not needed beside them.
    let is_told = |below: &&Command| !below.is_hide_set() && below.get_name() != "help";
    command.get_subcommands().filter(is_told).try_for_each(|below| pages(below, folder))
}
