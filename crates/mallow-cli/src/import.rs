//! `mallow import`: converts another tool's profile into a trace, or explains an allocator's statistics.

use crate::args::LowImport;
use crate::busy;
use crate::destination::Destination;
use crate::{exit_code, output};
use mallow_formats::export::{ExportFormat, write_trace};
use mallow_formats::{Document, Format, Kind};
use mallow_profile::AllocatorState;
use mallow_query::Failure;
use mallow_query::{ProfileFile, refused};
use mallow_text::plural;
use std::path::{Path, PathBuf};

/// Reads the file and writes the trace, or shows the statistics.
pub(crate) fn run(import: &LowImport) -> Result<u8, Failure> {
    let file = import.file.display();
    let refused = |error| refused(&import.file, &error);
    let format = mallow_formats::format_of(&import.file).map_err(refused)?;
    if let kind @ (Kind::GcLog | Kind::Snapshot) = format.kind() {
        return Err(Failure::new(format!("{file} is a {format}; see it with {} {file}.", kind.command())));
    }
    let reading = busy::reading(&import.file);
    let opened = mallow_formats::open(&import.file).map_err(refused)?;
    drop(reading);
    match opened {
        Document::AllocatorState(state) => show_allocator(&state),
        Document::GcLog(_) | Document::Snapshot(..) => {
            Err(Failure::new(format!("{file} changed while it was read.")))
        }
        Document::Cpu(format, _) => Err(Failure::new(format!(
            "{file} is a {format} that tells where time went, and a trace holds what allocated; see it with mallow report \
             {file}."
        ))),
        Document::Profile(Format::Mallow, _) => {
            Err(Failure::new(format!("{file} is a mallow trace already; see it with mallow report {file}.")))
        }
        Document::Profile(format, imported) => {
            let document = ProfileFile::read(&import.file, format, imported);
            output::warn(&document.warnings);
            if !document.profile.recording.suppressions.is_empty() {
                let kept_out = "the file's suppressions of leaks are not in the trace; report the file itself to use them";
                output::warn(&[kept_out.to_owned()]);
            }
            let path = import.output.clone().map_or_else(|| beside(&import.file), Ok)?;
            let new = Destination::of(Some(path), import.force);
            let events = document.exported_events(ExportFormat::Mallow)?;
            let profile = &document.profile;
            new.write(|out| match events {
                Some(events) => Ok(write_trace(profile, format.word(), events, out)?),
                None => mallow_trace::write_profile(profile, format.word(), out),
            })?;
            let sites = plural(profile.sites.len() as u64, "site");
            let next = new.file().map(|new| format!("next: mallow report {}\n", new.path.display()));
            output::inform(&format!("read a {format} with {sites}\n{}", next.unwrap_or_default()));
            Ok(exit_code::FINE)
        }
    }
}

/// Returns `NAME.mallow` in the current folder.
fn beside(file: &Path) -> Result<PathBuf, Failure> {
    if file.as_os_str() == mallow_files::STREAM {
        return Err(Failure::new("what comes by stdin has no name, so name the trace with -o."));
    }
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".mallow");
    Ok(PathBuf::from(name))
}

fn show_allocator(state: &AllocatorState) -> Result<u8, Failure> {
    output::warn(&state.warnings);
    let page = mallow_text::allocator::page(state, crate::terminal::style(&std::io::stdout()));
    output::to_stdout(|out| out.write_all(page.as_bytes()))?;
    Ok(exit_code::FINE)
}
