//! `mallow import`: another tool's profile as a trace of ours, or an allocator's statistics in plain words.

use crate::args::LowImport;
use crate::request::NewFile;
use crate::{exit_code, output};
use mallow_formats::{Document, Format, Kind};
use mallow_profile::AllocatorState;
use mallow_query::Failure;
use mallow_query::refused;
use mallow_text::plural;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// Reads the file and writes the trace, or shows the statistics.
pub(crate) fn run(import: &LowImport) -> Result<u8, Failure> {
    let file = import.file.display();
    let refused = |error| refused(&import.file, &error);
    let format = mallow_formats::format_of(&import.file).map_err(refused)?;
    if let kind @ (Kind::GcLog | Kind::Snapshot) = format.kind() {
        return Err(Failure::new(format!("{file} is a {format}; see it with {} {file}.", kind.command())));
    }
    match mallow_formats::open(&import.file).map_err(refused)? {
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
            output::warn(&imported.warnings);
            let path = import.output.clone().unwrap_or_else(|| beside(&import.file));
            let new = NewFile { path, force: import.force };
            let mut out = BufWriter::new(output::create(&new.path, new.force)?);
            mallow_trace::write_profile(&imported.profile, format.word(), &mut out)
                .and_then(|()| out.flush())
                .map_err(|error| Failure::writing(&new.path, &error))?;
            let sites = plural(imported.profile.sites.len() as u64, "site");
            let path = new.path.display();
            output::tell(&format!("read a {format} with {sites}\nnext: mallow report {path}\n"));
            Ok(exit_code::FINE)
        }
    }
}

/// `NAME.mallow` in the current folder.
fn beside(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".mallow");
    PathBuf::from(name)
}

fn show_allocator(state: &AllocatorState) -> Result<u8, Failure> {
    output::warn(&state.warnings);
    let page = mallow_text::allocator::page(state, crate::terminal::style(&std::io::stdout()));
    output::to_stdout(|out| out.write_all(page.as_bytes()))?;
    Ok(exit_code::FINE)
}
