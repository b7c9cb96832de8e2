//! `mallow export`: a profile as another tool's file.

use crate::failure::Failure;
use crate::request::Export;
use crate::{exit_code, open, output};
use mallow_formats::export::{self, ExportFormat, ExportOptions, Packing};
use mallow_formats::native::ReallocBooking;
use std::io::{BufWriter, IsTerminal, Write};

/// Reads the profile and writes it.
pub(crate) fn run(request: &Export) -> Result<u8, Failure> {
    if request.output.is_none() && is_binary(request.format) && std::io::stdout().is_terminal() {
        let word = request.format.word();
        return Err(Failure::new(format!(
            "a {word} file is not for a terminal; write it to a file with -o."
        )));
    }
    let imported = open::profile(&request.file, ReallocBooking::OwnSite)?;
    output::warn(&imported.warnings);
    let options = ExportOptions { measure: request.measure };
    let profile = &imported.profile;
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

fn is_binary(format: ExportFormat) -> bool {
    matches!(format, ExportFormat::Mallow | ExportFormat::Pprof)
}
