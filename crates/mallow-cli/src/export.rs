//! `mallow export`: a profile as another tool's file.

use crate::request::Export;
use crate::{exit_code, output};
use mallow_formats::export::{self, ExportFormat, ExportOptions, Packing};
use mallow_profile::{Profile, ReallocAttribution};
use mallow_query::{Failure, ProfileFile, choose};
use mallow_view::Measure;
use std::io::{BufWriter, IsTerminal, Write};

/// Reads the profile and writes it.
pub(crate) fn run(request: &Export) -> Result<u8, Failure> {
    if request.output.is_none() && is_binary(request.format) && std::io::stdout().is_terminal() {
        let word = request.format.word();
        return Err(Failure::new(format!(
            "a {word} file is not for a terminal; write it to a file with -o."
        )));
    }
    let document = ProfileFile::open(&request.file, ReallocAttribution::OwnSite)?;
    output::warn(&document.warnings);
    let profile = &document.profile;
    if let Some(reason) = export::missing(profile, request.format) {
        return Err(Failure::new(format!("cannot export {}: {reason}.", request.file.display())));
    }
    let options = ExportOptions { measure: measure(request, profile)? };
    let mut warnings = Vec::new();
    match &request.output {
        Some(new) => {
            let mut out = BufWriter::new(output::create(&new.path, new.force)?);
            let packing = Packing::of_path(&new.path);
            warnings = export::write_packed(profile, request.format, &options, packing, &mut out)
                .and_then(|warnings| out.flush().map(|()| warnings))
                .map_err(|error| Failure::writing(&new.path, &error))?;
        }
        None => output::to_stdout(|out| {
            warnings = export::write(profile, request.format, &options, out)?;
            Ok(())
        })?,
    }
    output::warn(&warnings);
    Ok(exit_code::FINE)
}

/// The metric of a format that holds only one, or that it shows first; other formats do not ask.
fn measure(request: &Export, profile: &Profile) -> Result<Measure, Failure> {
    if request.format == ExportFormat::Mallow {
        return Ok(Measure::Bytes);
    }
    let order = std::iter::once(Measure::Bytes).chain(Measure::ALL);
    choose(request.measure, order, &[(&request.file, profile)])
}

fn is_binary(format: ExportFormat) -> bool {
    matches!(format, ExportFormat::Mallow | ExportFormat::Pprof)
}
