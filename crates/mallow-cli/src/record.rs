//! `mallow record`: run a command, keep everything, show a summary.

use crate::failure::Failure;
use crate::request::{NewFile, Record};
use crate::symbols::Names;
use crate::text::{self, Style};
use crate::{exit_code, open, output, preload};
use mallow_collect::{Output, RecordOptions, Setting};
use mallow_formats::native::ReallocBooking;
use mallow_view::Summary;
use std::path::PathBuf;

/// Records a command. What people see is read back from the trace, so that it is what the file holds.
pub(crate) fn run(record: Record) -> Result<u8, Failure> {
    if record.output.as_ref().is_some_and(NewFile::is_stdout) {
        return Err(Failure::new(
            "a trace is read again when the program has ended, so it cannot go to stdout; name a file with -o.",
        ));
    }
    let output = match record.output {
        Some(file) => Output::File { path: file.path, force: file.force },
        None => Output::Default(PathBuf::from(".")),
    };
    let options = RecordOptions {
        command: record.command,
        output,
        summary_only: record.summary_only,
        regions: None,
        setting: Setting::default(),
        preload: preload::LIBRARY,
    };
    let mut names = Names::new();
    let outcome = mallow_collect::record(&options, &mut |module, calls| names.of_calls(module, calls))?;
    output::warn(&outcome.warnings);
    output::note(&outcome.notes);
    let trace = open::profile(&outcome.trace, ReallocBooking::OwnSite)?;
    // The trace says most of it again.
    let new: Vec<String> =
        trace.warnings.iter().filter(|sentence| !outcome.warnings.contains(sentence)).cloned().collect();
    output::warn(&new);
    let shown = outcome.trace.strip_prefix(".").unwrap_or(&outcome.trace).display().to_string();
    let style = Style::of(&std::io::stderr());
    output::tell(&text::summary::summary(&Summary::of(&trace.profile), &outcome.blind, &shown, style));
    Ok(if outcome.interrupted { exit_code::INTERRUPTED } else { exit_code::of_program(outcome.exit) })
}
